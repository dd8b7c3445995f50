// Comparison of imported data with the published examples of its task.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace lra::checks {

// Examples of a dataset: those of the test, and all others. What is held out for validation belongs
// to train.
struct SplitCounts {
  int64_t train = 0, test = 0;
  bool operator==(const SplitCounts&) const = default;
};
SplitCounts counts_of(const Dataset& dataset);
SplitCounts counts_of(const std::map<std::string, int64_t>& sizes);  // by split
std::string text_of(const SplitCounts& counts);                      // "25,000 + 25,000"

// The published examples of a task, to tell data that was changed.
struct PublishedData {
  SplitCounts counts;
  std::string_view examples = {};  // hash_of_examples(); empty: not known
};

// One hash over the labels and stored values of the test examples and of all others, each in any
// order: the order of files, batches and rows, and the part that is held out, do not matter. 32 hex
// digits. token_bytes must be 1.
std::string hash_of_examples(const Dataset& dataset);

}  // namespace lra::checks
