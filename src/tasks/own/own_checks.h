// Doubts about a user's own data that apply to any classification of sequences.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {

// Returns a sentence for each of: a test of so few examples that its accuracy means little; the
// doubts about values (value_doubts.h) and about sequences (input_doubts.h) and positions
// (place_profile.h); token ids of which few occur and one is far larger, or that
// are measurements; tokens of val or test that
// train lacks, or that are distributed otherwise; a class with another share of val or test than of
// train; a baseline that fails on test and not on val; a position of val or test that gives all
// labels, unlike that of train. `names` are those of the classes.
std::vector<std::string> doubts_of_own_data(const Dataset& dataset, const CustomConfig& config,
                                            const std::vector<std::string>& names);

}  // namespace lra::tasks
