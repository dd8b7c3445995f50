// The best single threshold on how bright an image is: a trivial classifier for two classes.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

// Accuracy on `test` of the threshold on the sum of the stored bytes that is best on `train`.
Baseline brightness_baseline(const Split& train, const Split& test);

}  // namespace lra::tasks
