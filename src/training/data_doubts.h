// Whether the data that a run reads is the data that its user meant.
#pragma once

#include <string>
#include <vector>

#include "tasks/task.h"

namespace lra::training {

// Why `dataset`, which prepare_data() has found under `root`, may not be the data that was meant,
// one sentence each; empty for data that leaves no doubt. Generated data: files under the root that
// could have been meant. Imported data: raw files that are newer than what was prepared of them.
std::vector<std::string> data_doubts(const tasks::TaskSpec& spec, const tasks::Task& task,
                                     const std::string& root, const tasks::Dataset& dataset);

}  // namespace lra::training
