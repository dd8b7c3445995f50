// Long ListOps: evaluate a nested prefix expression of up to 2000 tokens; ten classes.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern const TaskSpec kListOpsTask;

}  // namespace lra::tasks
