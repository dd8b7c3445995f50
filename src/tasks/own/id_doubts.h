// Doubts about the token ids of a user's own data.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {

// Returns a sentence for each of: a large vocabulary of which little occurs; ids that are
// measurements; val or test with ids that train lacks, more than its own rare ones lead one to
// expect, with ids that are all larger or smaller by one number, or in other shares than in train.
// Bytes of texts are ids too.
std::vector<std::string> doubts_of_ids(const Dataset& dataset, const CustomConfig& config);

}  // namespace lra::tasks
