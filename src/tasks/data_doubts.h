// Doubts whether the data that a run reads is the data that its user meant.
#pragma once

#include <string>
#include <vector>

#include "tasks/task.h"

namespace lra::tasks {

// Why `dataset`, which prepare_data() has found under `root`, may not be the data that was meant,
// one sentence each; empty for data that leaves no doubt. Generated data: files under the root that
// could have been meant. Imported data: raw files that are newer than what was prepared of them,
// other copies of them, examples that are
// empty, many that were skipped, and what the task itself doubts.
std::vector<std::string> data_doubts(const TaskSpec& spec, const Task& task,
                                     const std::string& root, const Dataset& dataset);

}  // namespace lra::tasks
