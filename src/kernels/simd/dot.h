// The sum of products of two rows.
#pragma once

#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

// Summed in float, in the order of the lanes. T is float or Bf16.
template <typename T>
float dot(const T* a, const T* b, int64_t count) {
  Floats sum = zeros();
  for (int64_t e = 0; e < count; e += kLanes) {
    const Lanes lanes = lanes_between(0, count - e);
    sum = multiply_add(load_lanes(lanes, a + e), load_lanes(lanes, b + e), sum);
  }
  return sum_of_lanes(sum);
}

}  // namespace lra::kernels::LRA_ISA
