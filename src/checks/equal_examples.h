// Finds examples of a dataset that are equal except for their label.
#pragma once

#include <cstdint>
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

// The criterion by which two sequences are equal.
enum class Equality {
  kTokens,  // all stored tokens are
  // The letters and digits of two texts are, in lower case, tags as <br /> left out: a tool that
  // cleans texts leaves these. Texts without any of them are compared byte by byte.
  kLetters
};

// One hash over the sequences of an example. Two texts in the other order are the same pair: no
// task tells the towers apart. For kLetters, token_bytes must be 1.
Hash128 content_hash(const Split& split, int64_t example, int64_t num_towers, Equality equality);

// Two examples are equal when the stored tokens of every tower are.
EqualExamples equal_examples(const Dataset& dataset);

// Number of examples of `split` that are equal to one of `other`, which may be of another dataset.
int64_t count_equal(const Split& split, const Split& other, int64_t num_towers);

}  // namespace lra::checks
