// Doubts about a user's own data that apply to any classification of sequences.
#pragma once

#include <string>
#include <vector>

#include "tasks/custom/custom_config.h"
#include "tasks/dataset.h"

namespace lra::tasks {

// Returns a sentence for each of: a test of so few examples that its accuracy means little; values
// with few positions of many channels (an array [N, C, L] instead of [N, L, C]); a number far from
// all others that occurs again and again in a channel (-999 for missing values); values of val or
// test that in most channels deviate 3.5 times as much as those of train, or less by as much, or
// around another mean; a
// split of values that stay the same from one position to the next more often than in train, or
// less; token ids of which few occur and
// one is far larger; tokens of val or test that train lacks, or that are distributed otherwise; a
// class with another share of val or test than of train; a baseline that fails on test and not on
// val. `names` are those of the classes.
std::vector<std::string> doubts_of_own_data(const Dataset& dataset, const CustomConfig& config,
                                            const std::vector<std::string>& names);

}  // namespace lra::tasks
