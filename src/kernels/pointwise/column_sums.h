// Sums over the rows of a matrix: the gradient of a bias, from the gradients of all tokens.
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

// sums[c] = the sum of x[r * columns + c] over `rows` rows, added in float: runs of kSumRows rows,
// then the runs; T is float or Bf16. Error against fp64: (kSumRows + rows / kSumRows) 2^-24 of the
// sum of absolute values. The same bits at any number of threads.
inline constexpr int64_t kSumRows = 512;
template <typename T>
void column_sums(int64_t rows, int64_t columns, const T* x, float* sums);

LRA_DECLARE_KERNELS(template <typename T>
                    void column_sums(int64_t rows, int64_t columns, const T* x, float* sums);)

}  // namespace lra::kernels
