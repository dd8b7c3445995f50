// Doubts about the values of a user's own data.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {

// Returns a sentence for each of: an array [N, C, L] instead of [N, L, C]; a channel that never
// varies; a number far from all others that occurs again and again in a channel (-999 for missing
// values); values of val or test in most channels scaled otherwise than those of train, or around
// another mean; single channels that changed, or channels in another order; a split of values that
// stay the same from one position to the next more often than in train, or less.
std::vector<std::string> doubts_of_values(const Dataset& dataset, const CustomConfig& config);

}  // namespace lra::tasks
