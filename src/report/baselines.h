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

}  // namespace lra::report
