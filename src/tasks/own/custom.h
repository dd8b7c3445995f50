// The user's own data: classification of one or two sequences of bytes, tokens or numbers, whose
// length, vocabulary, classes and channels come from the data.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern const TaskSpec kCustomTask;

}  // namespace lra::tasks
