// Import of a user's own files into a prepared dataset.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "io/json.h"
#include "tasks/own/custom_config.h"
#include "tasks/task.h"

namespace lra {
class Progress;
}

namespace lra::tasks {

// The facts that the import understood, as the manifest keeps it: key "read_...", text.
inline constexpr const char* kReading = "read_";

// Reads the files (python_reader.h) and writes the dataset `out`, a few megabytes at a time.
// Missing splits are drawn from train by class, a tenth each, by config.split_seed; values are
// standardized by the mean and deviation of each channel in train. Throws lra::Error for what the
// reader refuses, labels that occur only outside train, a single class, and a train split that is
// too small to draw from.
ImportedData import_own_files(const std::vector<std::string>& files, const std::string& out,
                              const CustomConfig& config, Progress& progress);

// Bytes of a stored token: float32 for each channel, or an id.
int64_t own_token_bytes(const CustomConfig& config);

// Names of the classes in their order.
inline constexpr const char* kLabelsFile = "labels.json";

}  // namespace lra::tasks
