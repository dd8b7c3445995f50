// Trivial classifiers, shown next to the models.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "report/tables/leaderboard.h"

namespace lra::report {

inline constexpr std::string_view kRootOperatorName = "root operator";

// One row per baseline name in the records ("majority"), in percent. If a task was run on several
// sets of data or at several lengths, each of them has a row that names it. ListOps figures the
// records lack are filled in with those of paper_tables.h. The last row is the paper's chance row.
std::vector<BaselineRow> find_baselines(const std::vector<RunRecord>& records,
                                        const std::vector<TaskColumn>& columns);

// The best trivial classifier of a column; null if none has a figure there.
const BaselineRow* best_baseline(const Leaderboard& board, size_t column);
// The best trivial classifier in the records of a cell's runs or, if they have none, of its column.
Trivial best_trivial(const Leaderboard& board, size_t column, const Cell& cell,
                     const std::vector<RunRecord>& records);

}  // namespace lra::report
