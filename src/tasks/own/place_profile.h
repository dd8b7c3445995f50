// Compares the mean token or value of each position between splits.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {

// Returns a sentence for each of val and test whose large tokens or values are at other positions
// than those of train: pixels were read in another order. Two halves of a split must agree with one
// another, so data whose positions are all alike is not judged, and neither are splits of fewer
// than 200 examples, sequences of several lengths and fewer than 32 kinds of tokens.
std::vector<std::string> doubts_of_places(const Dataset& dataset, const CustomConfig& config);

}  // namespace lra::tasks
