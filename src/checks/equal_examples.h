// Finds examples that are equal except for their label.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "data/dataset.h"

namespace lra::checks {

// One hash of the sequences of an example, in their order.
Hash128 hash_of(std::span<const Hash128> sequences);

// One hash per example of its stored tokens.
std::vector<Hash128> example_hashes(const Split& split, int64_t num_towers);

// Number of examples of `split` that are equal to one of `other`, which may be of another dataset.
int64_t count_equal(const Split& split, const Split& other, int64_t num_towers);

}  // namespace lra::checks
