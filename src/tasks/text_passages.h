// Compares the texts of two splits by the passages that they hold.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace lra::tasks {

// A sentence for each of val and test whose texts, unlike those of train, hold some passage of six
// bytes: they were cleaned, escaped or written in another way. Names the passage whose share of the
// texts differs most, if by 25 percentage points and eight standard errors. At most 2,000 drawn
// examples of each split are compared. Splits of fewer than 20 are
// not judged, nor are pairs, in which few documents occur many times.
std::vector<std::string> doubts_of_passages(const Dataset& dataset);

}  // namespace lra::tasks
