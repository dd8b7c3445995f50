#include "training/prepare_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tasks/listops.h"
#include "tasks/test_fixtures.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;
using tasks::TestFolder;

// Official files often lie in a folder of the task's name, where the prepared one would go.
TEST(PrepareData, RawFilesUnderTheTasksNameStayWhereTheyAre) {
  const TestFolder root;
  const auto task = tasks::kListOpsTask.make(parse_toml("", "test"));
  tasks::QuietProgress progress;
  task->make({.out = root.path("made"), .seed = 1, .num_train = 8, .num_val = 2, .num_test = 2},
             progress);
  const tasks::Dataset made = tasks::Dataset::open(root.path("made"));
  task->export_official(made, root.path("official"));
  fs::create_directories(root.path("data"));
  fs::rename(root.path("official/listops-1000"), root.path("data/listops"));
  for (int time = 0; time < 2; ++time) {
    const tasks::Dataset found = prepare_data(tasks::kListOpsTask, *task, root.path("data"), true);
    EXPECT_EQ(found.hash(), made.hash());
    EXPECT_EQ(found.folder(), root.path("data/listops.prepared"));
  }
  EXPECT_TRUE(fs::exists(root.path("data/listops/basic_train.tsv")));
  // Without the raw files what was prepared of them still counts.
  fs::remove_all(root.path("data/listops"));
  EXPECT_TRUE(data_found(tasks::kListOpsTask, *task, root.path("data")));
}

}  // namespace
}  // namespace lra::training
