// Examples of one split that are nearly examples of another: copies with small changes, or
// overlapping parts of one recording or document.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lra::tasks {

struct NearCopies {
  int64_t num_judged = 0;  // examples of the split that are long enough
  int64_t num_near = 0;
};

// Counts, for each of `splits`, the examples that share half of their passages (of 8 tokens, more
// where few symbols occur) with one example of `reference`, exact copies included; letter case does
// not count. Except in texts, a passage is the same backwards, as in a flipped picture. Both sets
// of passages are estimated by their 32 smallest hashes (bottom-k sketches); examples with fewer
// passages are not judged. At most 100,000 drawn examples of the reference and 10,000 of each split
// are compared. Of real values, passages are compared as they are, and once more after each channel
// of an example was brought to mean 0 and deviation 1 and rounded to quarters: another scale,
// offset or sign does not count. Of pairs both sequences are compared: one of them may be in many
// pairs.
std::vector<NearCopies> near_copies(const Dataset& dataset, const std::string& reference,
                                    const std::vector<std::string>& splits);

}  // namespace lra::tasks
