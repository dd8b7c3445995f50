// The results as a paper prints them: one table with chosen columns and rows.
#pragma once

#include <string>
#include <vector>

#include "report/formats/formats.h"
#include "report/tables/tables.h"

namespace lra::report {

struct ResultsChoice {
  // Names of tasks, "average", "parameters", "time", "memory" and "seeds"; empty: the tasks that
  // have figures and, if a row has it, the average.
  std::vector<std::string> columns = {};
  bool with_paper = false, with_baselines = false;  // rows of their own below ours
};

// Mean ± sample standard deviation over the seeds, the best of each column bold; without rows if
// there is no figure. Throws lra::Error for a column that is none.
Table results_table(const Leaderboard& board, const ResultsChoice& choice = {});

}  // namespace lra::report
