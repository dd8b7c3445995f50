// Comparison of imported data with the published examples of its task.
#pragma once

#include <string>

#include "tasks/task.h"

namespace lra::tasks {

// One hash over the labels and stored values of the test examples and of all others, each in any
// order: the order of files, batches and rows, and the part that is held out, do not matter. 32 hex
// digits. token_bytes must be 1, and there is one tower.
std::string hash_of_examples(const Dataset& dataset);

// A sentence if imported data has the size of the published data and other examples; empty if they
// are the same, if the size differs, and for tasks whose published examples are not known.
std::string doubt_of_published(const Dataset& dataset);

}  // namespace lra::tasks
