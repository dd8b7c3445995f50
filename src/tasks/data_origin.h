// Warnings that a run reads other files than may lie there for it.
#pragma once

#include <string>
#include <vector>

#include "tasks/task.h"

namespace lra::tasks {

// Other files that the data of a run could have been read from, one sentence each, if
// prepare_data() has found `dataset` under `root`: files under the root that could have been meant
// instead of generated data; raw files that are newer than the data prepared from them.
std::vector<std::string> origin_warnings(const TaskSpec& spec, const Task& task,
                                         const std::string& root, const Dataset& dataset);

}  // namespace lra::tasks
