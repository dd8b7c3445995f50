// A classifier of pairs that needs no model: papers that cite one another share words.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

// The share of words, of four letters or more, that the shorter of two texts has in common with the
// other, above a threshold that is learned on `train`. Reads the first 4,000 bytes of each text.
checks::Baseline shared_words_baseline(const Split& train, const Split& test);

}  // namespace lra::tasks
