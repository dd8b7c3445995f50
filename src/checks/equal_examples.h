// Finds examples of a dataset that are equal except for their label.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "data/dataset.h"

namespace lra::checks {

// The splits in the order train, val, test, and all their examples numbered in turn.
struct EqualExamples {
  struct Range {
    const char* name;
    int64_t begin, end;
  };
  std::vector<Range> splits;   // those that there are
  std::vector<int64_t> first;  // for each example the first one equal to it, which may be itself
};

// One hash of the sequences of an example, in their order.
Hash128 hash_of(std::span<const Hash128> sequences);

// Two examples are equal when the stored tokens of every tower are.
EqualExamples equal_examples(const Dataset& dataset);

// Number of examples of `split` that are equal to one of `other`, which may be of another dataset.
int64_t count_equal(const Split& split, const Split& other, int64_t num_towers);

}  // namespace lra::checks
