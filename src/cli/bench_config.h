// The models and workloads that lra bench measures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "training/settings/run_config.h"

namespace lra::cli {

struct BenchArguments {
  std::string task = "text", preset = "release", mode = "train", dtype = "fp32", out, one;
  std::vector<std::string> models, sets;
  std::vector<int64_t> lengths;  // empty: the default of the task
  int64_t batch = 32, windows = 5;
  double window_seconds = 1;
  std::optional<std::string> data;
  int table = 0;
  std::vector<const CLI::Option*> choices;  // the options that say what is measured
  bool whole_steps = false, in_turn = false, replace = false, real_batch = false;
  std::string busy;                    // what other programs did when the measurements began
  std::vector<CheckFinding> findings;  // about the data
};

// Whether --lengths may choose another length than the task's own.
bool has_length_setting(const std::string& task);

// The settings of a measurement. Images have their own length, regardless of `length`; 0 leaves it
// to the preset. `data` is the data root, as for --data.
training::RunConfig measured_config(const std::string& task, const std::string& model,
                                    const std::string& preset, int64_t length,
                                    std::vector<std::string> sets = {},
                                    const std::string& data = "");
// The same of the arguments.
training::RunConfig config_of(const BenchArguments& a, const std::string& model, int64_t length);

}  // namespace lra::cli
