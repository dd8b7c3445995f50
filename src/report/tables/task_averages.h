// The paper's row "Task Avg (Std)" of Tables 1, 6 and 7: how hard a task is, and how far the models
// lie apart on it.
#pragma once

#include <string>
#include <vector>

#include "report/tables/leaderboard.h"
#include "report/tables/statistics.h"

namespace lra::report {

struct TaskAverage {
  std::string name;  // "Task Avg (Std), release preset", "Task Avg (Std), paper v0"
  std::vector<Summary>
      cells;       // one per column, over models; without meaning for fewer than two models
  Summary scored;  // of the averages over the five tasks
};

// One for each preset with which two models have full runs of one task, then the paper's for both
// versions, computed from its rows. A model's best row counts; FAIL, diverged and shortened runs do
// not. Empty for a board without rows.
std::vector<TaskAverage> task_averages(const Leaderboard& board);

// "46.32 (4.60) [n=11]", with the sample standard deviation (n - 1); "-" for less than two models.
std::string task_average_text(const Summary& summary);

}  // namespace lra::report
