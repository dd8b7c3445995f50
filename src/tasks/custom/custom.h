// Data of the user's own: classification of one or two sequences of bytes, tokens or numbers, whose
// length, vocabulary, classes and channels are what the data says.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern const TaskSpec kCustomTask;

}  // namespace lra::tasks
