// Finds examples of a dataset that are equal except for their label.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/scaling.h"

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

// The criterion by which two sequences are equal.
enum class Equality {
  kTokens,  // all stored tokens are
  // The letters and digits of two texts are, in lower case, tags as <br /> left out: a tool that
  // cleans texts leaves these. Texts without any of them are compared byte by byte.
  kLetters
};

// Two examples are equal when the sequences of every tower are. Two texts in the other order
// are the same pair: no task tells the towers apart. For kLetters, token_bytes must be 1.
EqualExamples equal_examples(const Dataset& dataset, Equality equality = Equality::kTokens);

// Number of examples of `split` that are equal to one of `other`, which may be of another dataset
// and standardized otherwise.
int64_t count_equal(const ScaledSplit& split, const ScaledSplit& other, int64_t num_towers);

}  // namespace lra::checks
