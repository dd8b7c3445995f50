// The settings that `lra bench` measures, for finding out whether they have been measured.
#pragma once

#include <string>
#include <vector>

#include "training/run/run_config.h"

namespace lra::cli {

// The settings of a measurement. Images have their own length, regardless of `length`; 0 leaves it
// to the preset. `data` is the data root, as for --data.
training::RunConfig measured_config(const std::string& task, const std::string& model,
                                    const std::string& preset, int64_t length,
                                    std::vector<std::string> sets = {},
                                    const std::string& data = "");

}  // namespace lra::cli
