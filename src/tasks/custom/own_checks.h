// Doubts about a user's own data: what can be odd in any classification of sequences.
#pragma once

#include <string>
#include <vector>

#include "tasks/custom/custom_config.h"
#include "tasks/dataset.h"

namespace lra::tasks {

// A sentence for each of: a test of so few examples that its accuracy means little; values with
// few positions of many channels (an array [N, C, L] in place of [N, L, C]); a number far from all
// others that stands in a channel again and again (-999 for what is missing); values of val or test
// that in most channels deviate ten times as much as those of train, or a tenth as much.
std::vector<std::string> doubts_of_own_data(const Dataset& dataset, const CustomConfig& config);

}  // namespace lra::tasks
