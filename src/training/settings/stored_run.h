// Runs on disk: their settings and records, and settings that change when a run continues.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"
#include "training/settings/run_config.h"
#include "training/settings/run_folder.h"

namespace lra::training {

// A run on disk. Throws lra::Error for a folder that is not a run, and if config.toml is no longer
// the one the run began with.
struct StoredRun {
  RunConfig config;
  RunRecord record;
};
StoredRun read_run(const RunFolder& folder);

// A run's settings with those of [train] changed that may change between its steps, and how:
// "train.steps=200 instead of 100"; empty when nothing does. Throws lra::Error for others.
struct ChangedRun {
  RunConfig config;
  std::string change = {};
};
ChangedRun with_changes(const StoredRun& run, const std::vector<std::string>& sets);

}  // namespace lra::training
