#include "tasks/prepare_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "io/toml.h"
#include "tasks/all.h"
#include "tasks/data_origin.h"
#include "tasks/text/test_reviews.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Official files are often in a folder of the task's name, where the prepared one would go.
TEST(PrepareData, RawFilesUnderTheTasksNameStayWhereTheyAre) {
  const TestFolder root;
  const auto task = tasks::kListOpsTask.make(parse_toml("", "test"));
  QuietProgress progress;
  task->make({.out = root.path("made"), .seed = 1, .num_train = 8, .num_val = 2, .num_test = 2},
             progress);
  const Dataset made = Dataset::open(root.path("made"));
  task->export_official(made, root.path("official"));
  fs::create_directories(root.path("data"));
  fs::rename(root.path("official/listops-1000"), root.path("data/listops"));
  for (int time = 0; time < 2; ++time) {
    const Dataset found = prepare_data(tasks::kListOpsTask, *task, root.path("data"), true);
    EXPECT_EQ(found.hash(), made.hash());
    EXPECT_EQ(found.folder(), root.path("data/listops.prepared"));
  }
  EXPECT_TRUE(fs::exists(root.path("data/listops/basic_train.tsv")));
  // Prepared data still count without the raw files.
  fs::remove_all(root.path("data/listops"));
  EXPECT_TRUE(data_found(tasks::kListOpsTask, *task, root.path("data")));
}

TEST(PrepareData, MakesTheDefaultFolderAlone) {
  const TestFolder root;
  const auto task = tasks::kListOpsTask.make(parse_toml("", "test"));
  const auto error = [&] {
    return error_of([&] { prepare_data(tasks::kListOpsTask, *task, root.path("new"), true); });
  };
  EXPECT_THAT(error(), AllOf(HasSubstr("new: there is no such folder"),
                             HasSubstr("lra data make listops --out " + root.path("new/listops"))));
  EXPECT_FALSE(fs::exists(root.path("new")));
}

// Data of every task that a user may have meant is not replaced by generated data.
class NothingGenerated : public ::testing::Test {
 protected:
  std::string error() {
    return error_of([&] { prepare_data(tasks::kListOpsTask, *task_, root_.path("data"), true); });
  }
  std::vector<std::string> warnings() {
    const auto found = prepare_data(tasks::kListOpsTask, *task_, root_.path("data"), true);
    return origin_warnings(tasks::kListOpsTask, *task_, root_.path("data"), found);
  }
  void make(const std::string& out, uint64_t seed) {
    QuietProgress progress;
    task_->make({.out = out, .seed = seed, .num_train = 8, .num_val = 2, .num_test = 2}, progress);
  }

  TestFolder root_;
  std::unique_ptr<tasks::Task> task_ =
      tasks::kListOpsTask.make(parse_toml("num_train = 8\nnum_val = 2\nnum_test = 2", "test"));
};

TEST_F(NothingGenerated, BesidePartsOfTheOfficialFiles) {
  for (const char* place :
       {"data/", "data/listops/", "data/listops-1000/", "data/listops/lra_release/listops-1000/",
        "data/lra_release/lra_release/listops-1000/"}) {
    fs::remove_all(root_.path("data"));
    for (const char* name : {"basic_train.tsv", "basic_test.tsv"}) {
      write_text(root_.path(std::string(place) + name), "Source\tTarget\n");
    }
    EXPECT_THAT(error(), HasSubstr("'basic_val.tsv' is missing")) << place;
    EXPECT_FALSE(fs::exists(root_.path("data/listops.prepared")));
  }
}

TEST_F(NothingGenerated, WhereFilesLieUnderTheTasksName) {
  write_text(root_.path("data/listops/train.csv"), "");
  EXPECT_THAT(error(), HasSubstr("data/listops: holds 'train.csv', but no data of listops"));
  fs::remove_all(root_.path("data/listops"));
  write_text(root_.path("data/listops"), "");
  EXPECT_THAT(error(), HasSubstr("data/listops: is not a folder"));
  fs::remove_all(root_.path("data/listops"));
  write_text(root_.path("data/listops/.DS_Store"), "");
  EXPECT_EQ(error(), "");
}

TEST_F(NothingGenerated, WherePreparedDataHasLostItsManifest) {
  for (const char* place : {"data", "data/listops", "data/listops.prepared"}) {
    fs::remove_all(root_.path("data"));
    make(root_.path("made"), 1);
    write_text(root_.path("data/listops/x"), "");
    fs::remove_all(root_.path(place));
    fs::create_directories(fs::path(root_.path(place)).parent_path());
    fs::rename(root_.path("made"), root_.path(place));
    fs::remove(root_.path(place) + "/manifest.json");
    EXPECT_THAT(error(), HasSubstr("and no manifest.json")) << place;
  }
}

TEST_F(NothingGenerated, WherePreparedDataHasLostASplit) {
  make(root_.path("data/listops"), 1);
  for (const auto& entry : fs::directory_iterator(root_.path("data/listops"))) {
    if (entry.path().extension() != ".shard") continue;
    fs::rename(entry.path(), root_.path("kept"));
    EXPECT_THAT(error(), HasSubstr(entry.path().filename().string()));
    fs::rename(root_.path("kept"), entry.path());
  }
  EXPECT_EQ(error(), "");
}

TEST_F(NothingGenerated, WithoutSayingWhatWasNotRead) {
  fs::create_directories(root_.path("data"));
  EXPECT_THAT(warnings(), ElementsAre());
  write_text(root_.path("data/my-listops.csv"), "");
  EXPECT_THAT(warnings(),
              ElementsAre(HasSubstr("also holds 'my-listops.csv', which was not read")));
  fs::remove(root_.path("data/my-listops.csv"));
  tasks::write_small_imdb(root_.path("imdb"), 20);  // another task's, under any name
  const auto text = tasks::kTextTask.make(parse_toml("", "test"));
  const std::string made = prepare_data(tasks::kTextTask, *text, root_.path("imdb"), true).folder();
  fs::rename(made, root_.path("data/reviews"));
  EXPECT_THAT(warnings(), ElementsAre());
  write_text(root_.path("data/aclImdb/README"), "another task's");
  EXPECT_THAT(warnings(), ElementsAre());
  write_text(root_.path("data/basic_train.tsv"), "");
  EXPECT_THAT(warnings(),
              ElementsAre(HasSubstr("'basic_val.tsv' and 'basic_test.tsv' are missing")));
  for (const char* name : {"basic_val.tsv", "basic_test.tsv"}) {
    write_text(root_.path(std::string("data/") + name), "");
  }
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("is generated, and official files lie in")));
}

TEST_F(NothingGenerated, OrTakenForNewerFiles) {
  make(root_.path("made"), 1);
  task_->export_official(Dataset::open(root_.path("made")), root_.path("data"));
  EXPECT_THAT(warnings(), ElementsAre());
  const std::string file = root_.path("data/listops-1000/basic_val.tsv");
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::hours(1));
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("basic_val.tsv was changed after")));
}

TEST_F(NothingGenerated, WhereTheFilesLieDeeper) {
  make(root_.path("made"), 1);
  const Dataset made = Dataset::open(root_.path("made"));
  task_->export_official(made, root_.path("data/of mine/raw"));
  const std::string raw = root_.path("data/of mine/raw");
  EXPECT_THAT(error(), AllOf(HasSubstr("data: official files are deeper, in '" + raw + "'"),
                             HasSubstr("--data '" + raw + "'")));
  task_->export_official(made, root_.path("data/yours"));
  EXPECT_THAT(error(), HasSubstr("'" + raw + "' and '" + root_.path("data/yours") + "'"));
}

TEST(PrepareData, NamesTheTaskWithoutDataThatCannotBeGenerated) {
  const TestFolder root;
  const auto task = tasks::kTextTask.make(parse_toml("", "test"));
  const auto error = [&](const std::string& folder) {
    return error_of([&] { prepare_data(tasks::kTextTask, *task, root.path(folder), true); });
  };
  fs::create_directories(root.path("data/other"));
  EXPECT_THAT(error("data/other"), HasSubstr("no data for text in this folder"));
  EXPECT_THAT(error("data/none"), HasSubstr("there is no such folder"));
}

}  // namespace
}  // namespace lra::training
