// Doubts about what the sequences of a user's own data are made of.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {

// Returns a sentence for each of: tokens or values of which many sequences end, or begin, with the
// same one again and again, which is padding that should have been left out; as many examples as
// positions; texts that are names of files.
std::vector<std::string> doubts_of_inputs(const Dataset& dataset, const CustomConfig& config);

}  // namespace lra::tasks
