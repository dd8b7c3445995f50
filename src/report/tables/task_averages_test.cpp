#include "report/tables/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/test_records.h"

namespace lra::report {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<TaskAverage>& averages) {
  std::vector<std::string> names;
  for (const TaskAverage& average : averages) names.push_back(average.name);
  return names;
}

// The paper prints these, rounded to whole numbers: 29 (9.7), 61 (4.6), 55 (2.6), 41 (1.8), 72
// (3.7), and 52 (2.4) of the averages.
TEST(TaskAverages, ThePapersAreThoseOfItsRows) {
  std::vector<RunRecord> records;
  for (const char* task : {"listops", "text", "retrieval", "image", "pathfinder", "pathx"}) {
    records.push_back(finished_run(task, "transformer", 50));
  }
  const auto averages = task_averages(build_leaderboard(records));
  ASSERT_THAT(names_of(averages),
              ElementsAre("Task Avg (Std), paper v0", "Task Avg (Std), paper v1"));
  std::vector<std::string> texts;
  for (const Summary& cell : averages[0].cells) texts.push_back(task_average_text(cell));
  EXPECT_THAT(texts,
              ElementsAre("28.97 (9.74) [n=11]", "61.08 (4.60) [n=11]", "55.25 (2.60) [n=11]",
                          "41.43 (1.79) [n=11]", "71.67 (3.69) [n=11]", "-"));
  EXPECT_EQ(task_average_text(averages[0].scored), "51.68 (2.40) [n=11]");
  EXPECT_NEAR(*averages[1].scored.deviation, 2.74, 0.005);
}

TEST(TaskAverages, OursAreOfFullRunsAndOfTheBestRowOfAModel) {
  std::vector<RunRecord> records = {finished_run("image", "transformer", 42),
                                    finished_run("image", "performer", 38)};
  const auto first = task_averages(build_leaderboard(records)).front();
  EXPECT_EQ(task_average_text(first.cells[0]), "40.00 (2.83) [n=2]");
  // Half a budget counts for nothing.
  records.push_back(finished_run("image", "local", 90));
  records.back().steps = records.back().planned_steps = 300;
  EXPECT_EQ(task_average_text(task_averages(build_leaderboard(records)).front().cells[0]),
            "40.00 (2.83) [n=2]");
}

TEST(TaskAverages, NothingIsSaidOfOneModelOrNone) {
  EXPECT_TRUE(task_averages(build_leaderboard({})).empty());
  const auto averages =
      task_averages(build_leaderboard({finished_run("image", "transformer", 42)}));
  EXPECT_EQ(averages.size(), 2u);  // the paper's
  EXPECT_EQ(task_average_text(Summary{}), "-");
}

}  // namespace
}  // namespace lra::report
