// Products of bfloat16 numbers with float sums. Two neighbors in depth are one word of 32 bits,
// the earlier one in the lower half; arrays of words are passed as arrays of float.
//
// A word's two products are added to a sum one after the other, each rounded to float; numbers and
// sums below 2^-126 count as 0 (the instruction does both).
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.h"

namespace lra::kernels {

// kernels/gemm/gemm.h with A and B in words; `depth` counts words.
namespace avx512_bf16 {
void gemm_pairs(const GemmSize& size, const GemmOperands& operands, bool accumulate);
}

}  // namespace lra::kernels
