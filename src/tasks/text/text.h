// Byte-level text classification: the sentiment of a film review; two classes.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern const TaskSpec kTextTask;

}  // namespace lra::tasks
