#include "records/check_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/scratch_folder.h"
#include "records/check_provenance.h"
#include "records/run_identity.h"
#include "records/test_records.h"

namespace lra {
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
    run.test_split_examples = run.data_examples->test = n;
    run.baselines = {{"majority", 0}};
    run.test = Evaluation{5000, 1, static_cast<double>(n - 1) / static_cast<double>(n), n};
    EXPECT_THAT(check_record(run), IsEmpty()) << n;
  }
}

TEST(CheckRecord, TheBestValidationIsTheBest) {
  RunRecord run = honest_run();
  run.val_curve[0].accuracy = 0.7;
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("is above the best one")));
  run = honest_run();
  run.best_val->step = 2500;
  EXPECT_THAT(check_record(run), ElementsAre("best_val is of step 2500; the best of the curve is "
                                             "of step 5000"));
  run = honest_run();
  run.val = run.val_curve[0];
  EXPECT_THAT(check_record(run), ElementsAre("val is not the last validation of the curve"));
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
  EXPECT_THAT(changed([](RunRecord& run) { run.data_examples->test = 60; }),
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
  run.test_split_examples = run.data_examples->test = 1000;
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("tested on 2,000 of 1,000")));
}

// honest_run with a number among its settings of training.
RunRecord run_with(const std::string& key, int64_t value) {
  RunRecord run = honest_run();
  run.config.table("train").set(key, ConfigValue{value, ""});
  run.config_hash = config_hash(run.config);
  run.fingerprint = run_fingerprint(run.config_hash, run.data_hash, run.task_version);
  return run;
}

TEST(CheckRecord, ValidationsComeWhenTheSettingsSay) {
  EXPECT_THAT(check_record(run_with("eval_every", 2500)), IsEmpty());
  EXPECT_THAT(check_record(run_with("eval_every", 3000)),
              ElementsAre("a validation at step 2500; train.eval_every is 3000"));
  EXPECT_THAT(check_record(run_with("eval_every", 500)),
              ElementsAre("the number of validations is 2; expected 10"));
  RunRecord run = run_with("eval_every", 500);
  run.earlier_parts = std::vector<EarlierPart>(1);
  EXPECT_THAT(check_record(run), IsEmpty()) << "an earlier part had other settings";
}

TEST(CheckRecord, EvaluationsUseAsManyExamplesAsTheSettingsSay) {
  EXPECT_THAT(check_record(run_with("test_examples", 0)), IsEmpty());
  EXPECT_THAT(check_record(run_with("test_examples", 20)),
              ElementsAre("test at step 5000 is of 2,000 examples; expected 20 of 2,000"));
  RunRecord run = run_with("eval_examples", 0);
  EXPECT_THAT(check_record(run), IsEmpty());
  run.data_examples->val = 1001;
  EXPECT_THAT(check_record(run), testing::Each(HasSubstr("is of 1,000 examples; expected 1,001")));
}

TEST(CheckRecord, TheTestIsOfTheWeightsThatTheSettingsName) {
  RunRecord run = honest_run();
  run.test->step = 2500;
  EXPECT_THAT(check_record(run), ElementsAre("the step of the test is 2500; expected 5000"));
  run.config.table("train").set("test_checkpoint", ConfigValue{std::string("best"), ""});
  run.config_hash = config_hash(run.config);
  run.fingerprint = run_fingerprint(run.config_hash, run.data_hash, run.task_version);
  run.checkpoint = "best";
  EXPECT_THAT(check_record(run), ElementsAre("the step of the test is 2500; expected 5000"));
  run.val_curve[1].accuracy = 0.25;
  run.val = run.val_curve[1];
  run.best_val = run.val_curve[0];
  EXPECT_THAT(check_record(run), IsEmpty());
  run.checkpoint = "best readable";
  run.test->step = 6000;
  EXPECT_THAT(check_record(run), ElementsAre(HasSubstr("the test is of step 6000")));
}

TEST(CheckRecord, ValidatedOnTheTestSetItHasOneFigureForBoth) {
  RunRecord run = honest_run();
  run.validation = "test";
  for (Evaluation& e : run.val_curve) e.num_examples = 2000;
  run.val = run.best_val = run.val_curve[1];
  EXPECT_THAT(check_record(run),
              ElementsAre(HasSubstr("the validation of the same weights on the same examples is")));
  run.test->accuracy = run.val->accuracy;
  EXPECT_THAT(check_record(run), IsEmpty());
}

TEST(CheckRecord, ADoneRunHasAllThatItsEndLeaves) {
  const auto finding = [](void (*change)(RunRecord&)) {
    RunRecord run = honest_run();
    change(run);
    return check_record(run);
  };
  EXPECT_THAT(finding([](RunRecord& r) { r.weights_hash.clear(); }),
              ElementsAre(HasSubstr("no weights_hash")));
  EXPECT_THAT(finding([](RunRecord& r) { r.baselines.clear(); }),
              ElementsAre(HasSubstr("no baseline 'majority'")));
  EXPECT_THAT(finding([](RunRecord& r) { r.baselines["majority"] = 0.12345; }),
              ElementsAre(HasSubstr("is no whole number of 2,000 examples")));
  EXPECT_THAT(finding([](RunRecord& r) { r.failure = "lost"; }),
              ElementsAre(HasSubstr("and failed: lost")));
  EXPECT_THAT(finding([](RunRecord& r) { r.total_seconds = 1; }),
              ElementsAre(HasSubstr("train_seconds is 100.000, more than all 1.000")));
}

TEST(CheckRecord, ProvenanceCanBe) {
  const auto finding = [](void (*change)(Provenance&)) {
    RunRecord run = honest_run();
    change(run.provenance);
    Findings findings;
    check_provenance(run, findings);
    return findings.lines();
  };
  EXPECT_THAT(finding([](Provenance& p) { p.threads = 0; }),
              ElementsAre("provenance.threads is 0"));
  EXPECT_THAT(finding([](Provenance& p) { p.ranks = 1; }), ElementsAre("provenance.ranks is 1"));
  EXPECT_THAT(finding([](Provenance& p) { p.finished_utc = "2025-12-31T00:00:00Z"; }),
              ElementsAre(HasSubstr("before it started")));
  EXPECT_THAT(finding([](Provenance& p) { p.finished_utc = ""; }),
              testing::Contains(HasSubstr("finished_utc is no time")));
}

TEST(CheckRecord, AMeasurementIsNoRun) {
  RunRecord run = honest_run();
  run.kind = "bench";
  EXPECT_THAT(check_record(run),
              testing::Contains("kind is bench, and there are figures of training"));
  run = honest_run();
  Measurement& m = run.measurements.emplace_back();
  m.mode = "train";
  m.length = m.batch = m.windows = 5;
  m.steps_per_s = 2;
  m.slowest_steps_per_s = 1;
  m.fastest_steps_per_s = 3;
  EXPECT_THAT(check_record(run), ElementsAre("kind is train, and there are measurements"));
  RunRecord bench = honest_run();
  bench.kind = "bench";
  bench.steps = 0;
  bench.test.reset();
  bench.val.reset();
  bench.best_val.reset();
  bench.val_curve.clear();
  bench.data_hash = bench.fingerprint = "";
  bench.measurements = run.measurements;
  EXPECT_THAT(check_record(bench), IsEmpty());
  bench.measurements[0].steps_per_s = 9;
  EXPECT_THAT(check_record(bench), ElementsAre(HasSubstr("is not between the slowest window")));
  bench.measurements.clear();
  EXPECT_THAT(check_record(bench), ElementsAre(HasSubstr("there is no measurement")));
}

TEST(CheckRecord, ReadingRefusesWhatContradictsItself) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("record.json");
  write_record(honest_run(), path);
  EXPECT_EQ(to_json(read_consistent_record(path)), to_json(honest_run()));
  RunRecord run = honest_run();
  run.seed = 7;
  write_record(run, path);
  EXPECT_THAT(error_of([&] { read_consistent_record(path); }),
              testing::AllOf(HasSubstr(path + ": run.seed of the settings is 0"),
                             HasSubstr("lra report --check")));
}

}  // namespace
}  // namespace lra
