// The best single threshold on how bright an image is: a trivial classifier for two classes.
#pragma once

#include "checks/baseline.h"
#include "data/dataset.h"

namespace lra::checks {

// Accuracy on `test` of the threshold on the sum of the stored bytes that is best on `train`.
Baseline brightness_baseline(const Split& train, const Split& test);

}  // namespace lra::checks
