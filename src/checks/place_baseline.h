// A classifier that reads one token of an example: a baseline for models.
#pragma once

#include "checks/baseline.h"
#include "data/dataset.h"

namespace lra::checks {

// The best single token: predicts the label that is most frequent on train for the token at one
// place, the place that is best on train, and is scored on `test`. The places of each tower are all
// positions if every example has the same number of tokens (images), else the first and the last
// 64. It finds a label that was written into a corner of the picture, or behind the text. Reads at
// most 10,000 examples of train, fewer long ones. Wider tokens, and each channel of values, are
// told apart by up to 256 ranges of equal share. 0 when a split is empty.
Baseline place_baseline(const Split& train, const Split& test, int64_t num_classes,
                        int64_t num_towers = 1);

}  // namespace lra::checks
