// Comparison of imported data with the published examples of its task.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace lra::checks {

// The published examples of a task, to tell data of the same size that was changed.
struct PublishedData {
  int64_t num_train, num_test;  // what is held out for validation belongs to num_train
  std::string_view examples;    // hash_of_examples()
};

// One hash over the labels and stored values of the test examples and of all others, each in any
// order: the order of files, batches and rows, and the part that is held out, do not matter. 32 hex
// digits. token_bytes must be 1, and there is one tower.
std::string hash_of_examples(const Dataset& dataset);

// A sentence if the data has the size of the published data and other examples; none if they are
// the same, or if the size differs.
std::vector<std::string> doubts_of_published(const Dataset& dataset,
                                             const PublishedData& published);

}  // namespace lra::checks
