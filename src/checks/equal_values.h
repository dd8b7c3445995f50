// Finds examples of real values that are equal though they were standardized otherwise.
#pragma once

#include <cstdint>

#include "data/scaling.h"

namespace lra::checks {

// Number of examples of `split` whose values, before they were standardized, were those of one of
// `other`, but for the rounding of float32. Both hold values, and one of them was standardized.
int64_t count_equal_values(const ScaledSplit& split, const ScaledSplit& other, int64_t num_towers);

}  // namespace lra::checks
