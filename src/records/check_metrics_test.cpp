#include "records/check_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"
#include "records/test_records.h"

namespace lra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunRecord logged_run() {
  RunRecord run = finished_run("text", "performer", 65);
  run.val_curve = {{2500, 1.25, 0.625, 1000}, {5000, 1, 0.5, 1000}};
  run.val = run.val_curve[1];
  run.best_val = run.val_curve[0];
  return run;
}

// Lines as the trainer writes them.
std::string line(int64_t step, const std::string& kind, const std::string& rest) {
  return "{\"step\":" + std::to_string(step) + ",\"kind\":\"" + kind + "\"," + rest + "}\n";
}
std::string evaluation(int64_t step, const std::string& kind, const std::string& accuracy,
                       const std::string& loss, int64_t num_examples) {
  return line(step, kind,
              "\"loss\":" + loss + ",\"accuracy\":" + accuracy +
                  ",\"examples\":" + std::to_string(num_examples));
}
const std::string kTrain = line(2400, "train", "\"loss\":1.5,\"accuracy\":0.25");
const std::string kFirst = evaluation(2500, "val", "0.625", "1.25", 1000);
const std::string kLast = evaluation(5000, "val", "0.5", "1.0", 1000);
const std::string kTest = evaluation(5000, "test", "0.65", "1.5", 2000);
const std::string kHonest = kTrain + kFirst + kLast + kTest;

TEST(CheckMetrics, AnHonestRecordAgreesWithItsLog) {
  EXPECT_THAT(check_metrics(logged_run(), kHonest), IsEmpty());
}

TEST(CheckMetrics, FiguresThatTheLogContradictsAreFound) {
  RunRecord run = logged_run();
  run.test->accuracy = 0.75;
  EXPECT_THAT(check_metrics(run, kHonest),
              ElementsAre("test.accuracy at step 5000 is 0.75; metrics.jsonl says 0.65"));
  run = logged_run();
  run.test->num_examples = 1000;
  run.test->loss = 1.25;
  run.test->step = 2500;
  EXPECT_THAT(check_metrics(run, kHonest),
              ElementsAre("test.step is 2500; metrics.jsonl says 5000",
                          "test.loss at step 2500 is 1.25; metrics.jsonl says 1.5",
                          "test.num_examples at step 2500 is 1000; metrics.jsonl says 2000"));
  run = logged_run();
  run.val_curve[1].accuracy = 0.6;
  EXPECT_THAT(check_metrics(run, kHonest),
              ElementsAre("val_curve.accuracy at step 5000 is 0.6; metrics.jsonl says 0.5"));
  run = logged_run();
  run.val->accuracy = 0.6;
  run.best_val->accuracy = 0.9;
  EXPECT_THAT(check_metrics(run, kHonest),
              ElementsAre("val.accuracy at step 5000 is 0.6; metrics.jsonl says 0.5",
                          "best_val.accuracy at step 2500 is 0.9; metrics.jsonl says 0.625"));
}

TEST(CheckMetrics, ASpeedIsAtMostTwiceThatOfTheFastestLoggedSteps) {
  RunRecord run = logged_run();  // 10,000 tokens/s
  const auto log = [](int64_t last_step, const std::string& speed) {
    const std::string rest = R"("loss":1.5,"accuracy":0.25,"tokens_per_s":)";
    return line(1000, "train", rest + "4000") + line(last_step, "train", rest + speed) + kFirst +
           kLast + kTest;
  };
  EXPECT_THAT(check_metrics(run, log(2500, "5000.5")), IsEmpty());
  EXPECT_THAT(check_metrics(run, log(2500, "4999")),
              ElementsAre("train_tokens_per_s is 10,000; metrics.jsonl says at most 4,999"));
  EXPECT_THAT(check_metrics(run, log(2499, "4999")), IsEmpty()) << "the other half may be faster";
}

TEST(CheckMetrics, ADoneRunAndItsLogEndAlike) {
  RunRecord run = logged_run();
  EXPECT_THAT(
      check_metrics(run, kTrain + kFirst),
      ElementsAre("metrics.jsonl lacks 1 validation, the first at step 5000",
                  "metrics.jsonl lacks the test", "steps is 5000; metrics.jsonl says 2500"));
  EXPECT_THAT(check_metrics(run, kHonest + evaluation(3000, "val", "0.1", "2.0", 1000)),
              ElementsAre("the record lacks 1 validation, the first at step 3000"));
  EXPECT_THAT(check_metrics(run, kHonest + line(7, "skip", "\"fault\":\"x\"") +
                                     line(9, "roll_back", "\"fault\":\"x\"")),
              ElementsAre("skipped_steps is 0; metrics.jsonl says 1",
                          "roll_backs is 0; metrics.jsonl says 1"));
  run.best_val = Evaluation{4000, 1, 0.9, 1000};
  EXPECT_THAT(check_metrics(run, kHonest),
              ElementsAre("metrics.jsonl lacks 1 validation, the first at step 4000"));
  EXPECT_THAT(check_metrics(logged_run(), ""), testing::SizeIs(3));
}

TEST(CheckMetrics, TheLogOfARunThatGoesOnMayBeAhead) {
  RunRecord run = logged_run();
  run.status = RunStatus::kStopped;
  run.test.reset();
  run.steps = 2500;
  run.val_curve.pop_back();
  run.val = run.best_val = run.val_curve[0];
  EXPECT_THAT(check_metrics(run, kHonest), IsEmpty());
  EXPECT_THAT(check_metrics(run, kTrain), IsEmpty());
  run.val_curve[0].accuracy = 0.9;
  EXPECT_THAT(check_metrics(run, kHonest), ElementsAre(HasSubstr("val_curve.accuracy")));
}

TEST(CheckMetrics, TheLastLineOfAStepCountsAndBrokenOnesDoNot) {
  const RunRecord run = logged_run();
  const std::string earlier =
      evaluation(5000, "val", "0.1", "1.0", 1000) + evaluation(5000, "test", "0.1", "1.5", 2000);
  EXPECT_THAT(check_metrics(run, earlier + kHonest), IsEmpty());
  EXPECT_THAT(check_metrics(run, kHonest + earlier), testing::SizeIs(3));
  const std::string broken = "{\"step\":50\nnot json\n{\"step\":9000,\"kind\":\"val\"}\n[]\n\n" +
                             std::string(100000, '{') + "\n";
  EXPECT_THAT(check_metrics(run, broken + kHonest + "{\"step\":6000,\"kind\":\"train\"}"),
              IsEmpty());
}

TEST(CheckMetrics, OnlyTheLogBesideARunsRecordIsAsked) {
  const ScratchFolder scratch;
  RunRecord run = logged_run();
  run.test->accuracy = 0.75;
  const std::string path = scratch.file("record.json");
  EXPECT_THAT(check_metrics_beside(run, path), IsEmpty()) << "no log";
  write_file_atomically(scratch.file("metrics.jsonl"), kHonest);
  EXPECT_THAT(check_metrics_beside(run, path), ElementsAre(HasSubstr("test.accuracy")));
  EXPECT_THAT(check_metrics_beside(run, scratch.file("copy.json")), IsEmpty());
  run.kind = "bench";
  EXPECT_THAT(check_metrics_beside(run, path), IsEmpty());
  run.kind = "train";
  std::filesystem::remove(scratch.file("metrics.jsonl"));
  std::filesystem::create_directory(scratch.file("metrics.jsonl"));
  EXPECT_THAT(check_metrics_beside(run, path), ElementsAre(HasSubstr("metrics.jsonl")));
}

}  // namespace
}  // namespace lra
