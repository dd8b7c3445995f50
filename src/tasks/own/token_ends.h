// Doubts about the first and the last tokens of a user's own data.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {

// Returns a sentence for each of: a token with which all sequences of one split begin or end (a
// mark such as BOS), and not those of another; a token that occurs only in runs at the ends of
// sequences of different lengths, which is padding to the longest of a batch.
std::vector<std::string> doubts_of_token_ends(const Dataset& dataset, const CustomConfig& config);

}  // namespace lra::tasks
