// A classifier that reads one token of an example: a baseline for models.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

// For each place of an input the label that is most frequent on train with the token there; the
// place that is best on train is scored on `test`. Places are all positions where every example has
// as many tokens (images), else the first and the last 64; of each tower. A label that was written
// into a corner of the picture, or behind the text, shows here. Of train 10,000 examples are read
// at most, fewer of long ones. token_bytes must be 1. 0 when a split is empty.
Baseline place_baseline(const Split& train, const Split& test, int64_t num_classes,
                        int64_t num_towers = 1);

}  // namespace lra::tasks
