// The class whose name is in the text: a trivial classifier for texts.
#pragma once

#include <string>
#include <vector>

#include "tasks/task.h"

namespace lra::tasks {

// Predicts the class whose name is a word of the text, in any letter case; the most frequent class
// of train if none is, or several are. Names of several words are left out. It finds labels that
// were left in the text, such as "__label__2" and "[category: sport]". 0 when a split is empty.
Baseline name_baseline(const Split& train, const Split& test, const std::vector<std::string>& names,
                       int64_t num_towers);

}  // namespace lra::tasks
