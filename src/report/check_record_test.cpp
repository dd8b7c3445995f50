#include "report/check_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/run_identity.h"
#include "report/test_records.h"

namespace lra::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CheckRecord, AnHonestRecordAgreesWithItself) {
  EXPECT_THAT(check_record(honest_run()), IsEmpty());
}

TEST(CheckRecord, ChangedSettingsDoNotHaveTheirHash) {
  RunRecord run = honest_run();
  run.config.table("train").set("steps", ConfigValue{int64_t{9}, ""});
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("config_hash is")));
  run.config_hash = config_hash(run.config);
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("fingerprint is")));
}

TEST(CheckRecord, SettingsOfAnotherRunAreFound) {
  RunRecord run = honest_run();
  run.seed = 7;
  EXPECT_THAT(check_record(run), ElementsAre("run.seed of the settings is 0; expected 7"));
}

TEST(CheckRecord, AnAccuracyIsAShareOfItsExamples) {
  RunRecord run = honest_run();
  run.test->accuracy = 0.65012345;
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("no whole number of 2,000 examples")));
  run.test->accuracy = 1301.0 / 2000;
  EXPECT_THAT(check_record(run), IsEmpty());
  run.test->accuracy = 1.5;
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("accuracy 1.5")));
}

TEST(CheckRecord, ThirdsAndSeventeensAreSharesToo) {
  for (const int64_t n : {3, 17, 17437, 25000, 1000003}) {
    RunRecord run = honest_run();
    run.test_split_examples = n;
    run.test = Evaluation{5000, 1, static_cast<double>(n - 1) / static_cast<double>(n), n};
    EXPECT_THAT(check_record(run), IsEmpty()) << n;
  }
}

TEST(CheckRecord, TheBestValidationIsTheBest) {
  RunRecord run = honest_run();
  run.val_curve[0].accuracy = 0.7;
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("is above the best one")));
}

TEST(CheckRecord, FiguresFollowFromOthers) {
  const auto changed = [](void (*change)(RunRecord&)) {
    RunRecord run = honest_run();
    change(run);
    return check_record(run);
  };
  EXPECT_THAT(changed([](RunRecord& run) { run.examples = 3; }),
              ElementsAre(HasSubstr("examples is 3; expected 160000")));
  EXPECT_THAT(changed([](RunRecord& run) { run.train_tokens_per_s = 1e12; }),
              ElementsAre(HasSubstr("train_tokens_per_s is 1000000000000.0")));
  EXPECT_THAT(changed([](RunRecord& run) { run.train_seconds = 1e-9; }),
              ElementsAre(HasSubstr("tokens took 0.000 s")));
  EXPECT_THAT(changed([](RunRecord& run) { run.computed_tokens = run.tokens - 1; }),
              ElementsAre(HasSubstr("less than the")));
  EXPECT_THAT(changed([](RunRecord& run) { run.train_examples_per_s = 1e9; }),
              ElementsAre(HasSubstr("train_examples_per_s is 1000000000.000")));
  EXPECT_THAT(changed([](RunRecord& run) { run.checkpoint = "best"; }),
              ElementsAre(HasSubstr("train.test_checkpoint is last")));
  EXPECT_THAT(changed([](RunRecord& run) {
                run.test_split_examples = 2000;
                run.data_examples = SplitSizes{.train = 1, .val = 1, .test = 60};
              }),
              ElementsAre(HasSubstr("data_examples of the test is 60; expected 2000")));
  EXPECT_THAT(changed([](RunRecord& run) { run.peak_resident_bytes = -1; }),
              ElementsAre(HasSubstr("peak_resident_bytes is -1")));
}

TEST(CheckRecord, StepsFollowTheirPlan) {
  RunRecord run = honest_run();
  run.planned_steps = 4000;
  EXPECT_THAT(check_record(run),
              ElementsAre(HasSubstr("4,000 were planned"), HasSubstr("does not say why")));
  run = honest_run();
  run.test.reset();
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("no test figure")));
  run = honest_run();
  run.test_split_examples = 1000;
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("tested on 2,000 of 1,000")));
}

}  // namespace
}  // namespace lra::report
