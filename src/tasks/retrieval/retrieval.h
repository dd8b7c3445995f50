// Byte-level document matching: does one paper cite the other? Two documents, two classes.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern const TaskSpec kRetrievalTask;

}  // namespace lra::tasks
