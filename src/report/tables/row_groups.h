// Groups of runs that may share a row of the leaderboard, or a mean.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "records/run_record.h"

namespace lra::report {

// Runs of one model. Those of one task differ only in the seed.
struct RowGroup {
  std::string model, preset, checkpoint;
  bool is_self_pretrained = false;  // the division of all runs
  // Settings that set this row apart from others of the same model and preset ("mixer.rank=128"),
  // or which of several settings a task of this row was run with ("text: mixer.rank=256"), and
  // those of controls. Often empty.
  std::string settings;
  std::map<std::string, std::string> task_settings;           // by task: "mixer.rank=256"
  std::map<std::string, std::vector<const RunRecord*>> runs;  // by task
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

}  // namespace lra::report
