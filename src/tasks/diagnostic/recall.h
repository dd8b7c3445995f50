// Multi-query associative recall.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern constinit const TaskSpec kRecallTask;

}  // namespace lra::tasks
