// What a reader of the leaderboard has to be told before believing it.
#pragma once

#include <string>
#include <vector>

#include "report/leaderboard.h"
#include "report/row_groups.h"

namespace lra::report {

// Of single runs and cells: failed and diverged runs with their cause, weights chosen on the test
// set, one mean over different data.
void add_run_warnings(const std::vector<RowGroup>& groups, std::vector<std::string>& warnings);

// Of rows: figures of short runs or of part of the test set, ListOps figures that reading only the
// root operator would give, rows made by several revisions or on several machines.
void add_row_warnings(Leaderboard& board);

}  // namespace lra::report
