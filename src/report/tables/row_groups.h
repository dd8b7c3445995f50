// Groups of runs that may share a row of the leaderboard, or a mean.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/tables/leaderboard.h"

namespace lra::report {

// Runs of one model. Those of one task differ only in the seed.
struct RowGroup : RowHead {
  std::map<std::string, std::string> task_settings = {};  // by task: "mixer.rank=256"
  std::map<std::string, Runs> runs = {};                  // by task
};

// Groups training runs; other kinds of record are passed over. Runs of one task go into one mean
// only when model, preset, checkpoint, validation, division, data and every setting but the seed
// are the same, those of a self-pretraining included; self-pretrained runs have their own rows. If
// a task was run with several settings, one of them (of full runs, else of most steps; then that of
// most tasks, then of most runs) is in the model's main row, and each other one in its own row, so
// that a row never mixes them. A run found twice (same fingerprint and seed) counts once: the
// latest of those that are done, or the latest if none is. Lines about such repetitions are added
// to `warnings`. The records must outlive the groups.
std::vector<RowGroup> group_runs(const std::vector<RunRecord>& records,
                                 std::vector<std::string>* warnings);

// Throws lra::Error when one task appears in two versions: their scores must not be compared.
void refuse_mixed_versions(const std::vector<RunRecord>& records);

// Adds warnings about single runs and cells: failed and diverged runs with their cause, weights
// chosen on the test set; about rows: a column over different data, rows made by several revisions
// or on several machines; and about measurements that may not be the machine's, of several for one
// reason the first and their number. `records` are those the board was made of.
void add_warnings(Leaderboard& board, const std::vector<RowGroup>& groups,
                  const std::vector<RunRecord>& records);

}  // namespace lra::report
