#include "report/record_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "io/atomic_file.h"
#include "records/test_records.h"

namespace lra::report {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("lra_record_files_" + std::to_string(getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string add(const std::string& folder, const std::string& model) {
    fs::create_directories(root_ / folder);
    const std::string path = (root_ / folder / "record.json").string();
    write_record(honest_run(model), path);
    return path;
  }

  fs::path root_;
  std::vector<std::string> problems_;
};

TEST_F(RecordFiles, FoldersAreSearchedInAFixedOrder) {
  add("b/deep/er", "performer");
  add("a", "transformer");
  const auto records = collect_records({root_.string()}, &problems_);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].model, "transformer");
  EXPECT_EQ(records[1].model, "performer");
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(RecordFiles, AFileReachedTwiceCountsOnce) {
  const std::string path = add("a", "transformer");
  EXPECT_EQ(collect_records({path, root_.string(), path}, &problems_).size(), 1u);
}

TEST_F(RecordFiles, AForeignFileIsAProblemAndNotTheEnd) {
  add("a", "transformer");
  fs::create_directories(root_ / "b");
  std::ofstream(root_ / "b" / "record.json") << "{\"hello\": 1}";
  std::ofstream(root_ / "b" / "other.json") << "not looked at";
  EXPECT_EQ(collect_records({root_.string()}, &problems_).size(), 1u);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("b/record.json")));
}

TEST_F(RecordFiles, ARecordThatItsLogContradictsIsLeftOut) {
  add("a", "transformer");
  add("b", "performer");
  std::ofstream(root_ / "b" / "metrics.jsonl")
      << "{\"step\": 5000, \"kind\": \"test\", \"accuracy\": 0.25, \"loss\": 1.0, "
         "\"num_examples\": 60}\n";
  EXPECT_EQ(collect_records({root_.string()}, &problems_).size(), 1u);
  EXPECT_THAT(problems_,
              ElementsAre(HasSubstr("b/record.json: metrics.jsonl lacks the validation")));
}

TEST_F(RecordFiles, AnEditedRecordIsLeftOut) {
  add("a", "transformer");
  const std::string path = add("b", "performer");
  std::string text = read_file(path, 1 << 20);
  text.replace(text.find("0.65"), 4, "0.95");
  write_file_atomically(path, text);
  EXPECT_EQ(collect_records({root_.string()}, &problems_).size(), 1u);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("b/record.json: was changed after it was written")));
}

TEST_F(RecordFiles, AMissingPathIsAProblem) {
  const auto records = collect_records({(root_ / "none").string()}, &problems_);
  EXPECT_THAT(records, IsEmpty());
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("none")));
}

TEST_F(RecordFiles, AFolderWithoutRecordsIsAProblem) {
  collect_records({root_.string()}, &problems_);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("no record.json")));
}

TEST_F(RecordFiles, LinksToFoldersAreFollowedOnce) {
  add("view/a", "transformer");
  add("store/b", "transformer");
  fs::create_directory_symlink(root_ / "view", root_ / "view" / "a" / "loop");
  fs::create_directory_symlink(root_ / "store", root_ / "view" / "linked");
  fs::create_directory_symlink(root_ / "store" / "b", root_ / "view" / "again");
  EXPECT_EQ(find_record_files({(root_ / "view").string()}, &problems_).size(), 2u);
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(RecordFiles, ASweepsOtherRunsAreLeftOutUnlessTheirFolderIsNamed) {
  add("sweep/chosen", "transformer");
  add("sweep/tries/other", "transformer");
  const std::string sweep = (root_ / "sweep").string();
  EXPECT_EQ(find_record_files({sweep}, &problems_).size(), 1u);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("sweep/tries: left out")));
  EXPECT_EQ(find_record_files({sweep}, &problems_, true).size(), 2u);
  EXPECT_EQ(find_record_files({sweep + "/tries"}, &problems_).size(), 1u);
  EXPECT_EQ(problems_.size(), 1u);
}

class AnalysisFiles : public RecordFiles {
 protected:
  void add_rollout(const std::string& picture_bytes, int64_t step = 0,
                   const std::string& checkpoint = "") {
    AnalysisRecord record;
    static_cast<RunIdentity&>(record) = honest_run("transformer");
    record.kind = "rollout";
    record.step = step;
    record.checkpoint = checkpoint;
    RolloutExample example;
    example.picture = "rollout-1.png";
    record.rollout = RolloutResult{{example}};
    fs::create_directories(root_ / "run" / "analysis");
    write_analysis(record, (root_ / "run" / "analysis" / "rollout.json").string());
    std::ofstream(root_ / "run" / "analysis" / "rollout-1.png") << picture_bytes;
  }
  const std::string png_ = std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16) + "rest";
};

TEST_F(AnalysisFiles, AreFoundWithTheirPictures) {
  add("run", "transformer");
  add_rollout(png_);
  const auto analyses = collect_analyses({root_.string()}, &problems_);
  ASSERT_EQ(analyses.size(), 1u);
  EXPECT_EQ(analyses[0].record.kind, "rollout");
  EXPECT_EQ(analyses[0].pictures.at("rollout-1.png"), png_);
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(AnalysisFiles, OfAnotherRunAreLeftOut) {
  add("run", "performer");
  add_rollout(png_);
  EXPECT_THAT(collect_analyses({root_.string()}, &problems_), IsEmpty());
  EXPECT_THAT(problems_,
              ElementsAre(HasSubstr("left out; it is of another run: text transformer")));
  problems_.clear();
  add("run", "transformer");
  add_rollout(png_, 6000);
  EXPECT_THAT(collect_analyses({root_.string()}, &problems_), IsEmpty());
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("it is of step 6000; the run has 5000")));
  problems_.clear();
  add_rollout(png_);
  fs::rename(root_ / "run/analysis/rollout.json", root_ / "run/analysis/span.json");
  EXPECT_THAT(collect_analyses({root_.string()}, &problems_), IsEmpty());
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("it is of kind 'rollout'")));
}

TEST_F(AnalysisFiles, OfWeightsThatWereReplacedAreLeftOut) {
  add("run", "transformer");
  add_rollout(png_, 2500, "last");
  EXPECT_THAT(collect_analyses({root_.string()}, &problems_), IsEmpty());
  EXPECT_THAT(problems_,
              ElementsAre(HasSubstr("it is of step 2500; the run's last weights are those "
                                    "of 5000: analyze the run again")));
  problems_.clear();
  add_rollout(png_, 2500, "step_2500");
  EXPECT_EQ(collect_analyses({root_.string()}, &problems_).size(), 1u);
  add_rollout(png_, 5000, "best");
  EXPECT_EQ(collect_analyses({root_.string()}, &problems_).size(), 1u);
  EXPECT_THAT(problems_, IsEmpty());
}

// Also one that an earlier program wrote, without warnings.
TEST_F(AnalysisFiles, HaveTheWarningsOfTheDataOfTheirRun) {
  add_rollout(png_);
  RunRecord run = honest_run("transformer");
  run.warnings = {"memory: too little", std::string(kEditedPresets) + "one"};
  run.data_checks = {{{.check = "copies", .split = "test", .text = "9 are of train"}}};
  write_record(run, (root_ / "run" / "record.json").string());
  const auto found = collect_analyses({root_.string()}, &problems_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].record.data_checks, run.data_checks);
  EXPECT_EQ(found[0].record.warnings->size(), 1u);
}

TEST_F(AnalysisFiles, WhatIsNoPngStaysOut) {
  add_rollout("<script>alert(1)</script>");
  const auto analyses = collect_analyses({root_.string()}, &problems_);
  ASSERT_EQ(analyses.size(), 1u);
  EXPECT_THAT(analyses[0].pictures, IsEmpty());
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("not a PNG")));
}

TEST_F(AnalysisFiles, ALargePictureStaysOut) {
  add_rollout(png_ + std::string(kMostPictureBytes, 'x'));
  EXPECT_THAT(collect_analyses({root_.string()}, &problems_)[0].pictures, IsEmpty());
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("rollout-1.png")));
}

TEST_F(AnalysisFiles, AForeignFileIsAProblemAndNotTheEnd) {
  add_rollout(png_);
  std::ofstream(root_ / "run" / "analysis" / "span.json") << "{}";
  EXPECT_EQ(collect_analyses({root_.string()}, &problems_).size(), 1u);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("span.json")));
}

}  // namespace
}  // namespace lra::report
