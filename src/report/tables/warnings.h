// Warnings that a reader of the leaderboard needs before trusting it.
#pragma once

#include <string>
#include <vector>

#include "report/tables/leaderboard.h"
#include "report/tables/row_groups.h"

namespace lra::report {

// Warnings about single runs and cells: failed and diverged runs with their cause, weights chosen
// on the test set.
void add_run_warnings(const std::vector<RowGroup>& groups, std::vector<std::string>& warnings);

// Measurements that may not be the machine's; of several for one reason, the first and their
// number.
void add_speed_warnings(const std::vector<SpeedRow>& speeds, std::vector<std::string>& warnings);

// Warnings about rows: a column over different data, rows made by several revisions or on several
// machines. `records` are those the board was made of.
void add_row_warnings(Leaderboard& board, const std::vector<RunRecord>& records);

}  // namespace lra::report
