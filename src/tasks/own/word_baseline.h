// The class that a single word gives away: a trivial classifier for texts.
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

// Predicts the class of the word of a text that comes most purely with one class on train, and the
// most frequent class if no word is known. Words are runs of letters and digits, in small letters.
// It finds labels that were left in the text, such as "__label__2" and "[category: sport]". Reads
// at most 10,000 examples of train. token_bytes must be 1. 0 when a split is empty.
checks::Baseline word_baseline(const Split& train, const Split& test, int64_t num_classes,
                               int64_t num_towers);

}  // namespace lra::tasks
