// Image classification on sequences of pixels: gray CIFAR-10; ten classes.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern const TaskSpec kImageTask;

}  // namespace lra::tasks
