// Trivial classifiers, shown next to the models.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "report/leaderboard.h"

namespace lra::report {

inline constexpr std::string_view kRootOperatorName = "root operator";

// One row per baseline name in the records ("majority"), in percent. If a task was run with several
// task settings, each of them has a row that names it; figures of one setting that differ, because
// its data did, are averaged. ListOps figures the records lack are filled in with those of
// paper_tables.h. The last row is the paper's chance row.
std::vector<BaselineRow> find_baselines(const std::vector<RunRecord>& records,
                                        const std::vector<TaskColumn>& columns);

// The best trivial classifier of a column; null if none has a figure there.
const BaselineRow* best_baseline(const Leaderboard& board, size_t column);
// True if the figure is not above the best trivial baseline of its column by more than its
// interval.
bool is_at_baseline(const Leaderboard& board, size_t column, const Cell& cell);

}  // namespace lra::report
