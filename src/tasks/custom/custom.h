// Data of the user's own: classification of one or two sequences of bytes, tokens or numbers, whose
// length, vocabulary, classes and channels are what the data says.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern const TaskSpec kCustomTask;

// True for data of this task: nobody but its user knows what is odd in it.
inline bool is_own(const Manifest& manifest) { return manifest.task == kCustomTask.name; }

}  // namespace lra::tasks
