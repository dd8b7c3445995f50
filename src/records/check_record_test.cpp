#include "records/check_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "io/atomic_file.h"
#include "records/test_records.h"

namespace lra {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

TEST(CheckRecord, ARecordAgreesWithItsLog) {
  EXPECT_EQ(difference_from_log(logged_run(), kHonest), "");
}

TEST(CheckRecord, TheLogOfAnotherRunIsFound) {
  RunRecord run = logged_run();
  run.test->accuracy = 0.75;
  EXPECT_EQ(difference_from_log(run, kHonest),
            "the test has accuracy 0.75 and loss 1.5 of 2,000 examples at step 5000; metrics.jsonl "
            "says accuracy 0.65 and loss 1.5 of 2,000 examples at step 5000");
  run = logged_run();
  run.val_curve[1].loss = 1.5;
  EXPECT_THAT(difference_from_log(run, kHonest),
              HasSubstr("the validation has accuracy 0.5 and loss 1.5"));
  run = logged_run();
  EXPECT_THAT(difference_from_log(run, kTrain + kFirst + kTest),
              HasSubstr("metrics.jsonl lacks the validation, accuracy 0.5"));
  EXPECT_THAT(difference_from_log(run, kTrain + kFirst + kLast), HasSubstr("lacks the test"));
}

TEST(CheckRecord, TheLogOfARunThatGoesOnMayBeAhead) {
  RunRecord run = logged_run();
  run.status = RunStatus::kStopped;
  run.test.reset();
  run.steps = 2500;
  run.val_curve.pop_back();
  EXPECT_EQ(difference_from_log(run, kHonest), "");
  EXPECT_EQ(difference_from_log(run, kTrain), "");
  run.val_curve[0].accuracy = 0.9;
  EXPECT_THAT(difference_from_log(run, kHonest), HasSubstr("the validation has accuracy 0.9"));
}

TEST(CheckRecord, TheLastLineOfAStepCountsAndBrokenOnesDoNot) {
  const RunRecord run = logged_run();
  const std::string earlier =
      evaluation(5000, "val", "0.1", "1.0", 1000) + evaluation(5000, "test", "0.1", "1.5", 2000);
  EXPECT_EQ(difference_from_log(run, earlier + kHonest), "");
  EXPECT_NE(difference_from_log(run, kHonest + earlier), "");
  const std::string broken = "{\"step\":50\nnot json\n{\"step\":9000,\"kind\":\"val\"}\n[]\n\n" +
                             std::string(100000, '{') + "\n";
  EXPECT_EQ(difference_from_log(run, broken + kHonest + "{\"step\":6000,\"kind\":\"train\"}"), "");
}

class ConsistentRecord : public ::testing::Test {
 protected:
  std::string refusal(const std::string& path) {
    try {
      (void)read_consistent_record(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  const ScratchFolder folder_;
  const std::string path_ = folder_.file("record.json"), log_ = folder_.file("metrics.jsonl");
};

TEST_F(ConsistentRecord, OnlyTheLogNextToARunsRecordIsRead) {
  RunRecord run = logged_run();
  run.test->accuracy = 0.75;
  for (const char* name : {"record.json", "copy.json"}) write_record(run, folder_.file(name));
  EXPECT_EQ(refusal(path_), "") << "no log";
  write_file_atomically(log_, kHonest);
  EXPECT_THAT(refusal(path_), AllOf(HasSubstr("record.json: the test has accuracy 0.75"),
                                    HasSubstr("expected the record and the log of one run")));
  EXPECT_EQ(refusal(folder_.file("copy.json")), "");
  run.kind = "bench";
  write_record(run, path_);
  EXPECT_EQ(refusal(path_), "");
  write_record(logged_run(), path_);
  EXPECT_EQ(refusal(path_), "");
  std::filesystem::remove(log_);
  std::filesystem::create_directory(log_);
  EXPECT_THAT(refusal(path_), HasSubstr("metrics.jsonl"));
}

}  // namespace
}  // namespace lra
