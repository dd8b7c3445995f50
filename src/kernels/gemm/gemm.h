// Small matrix products inside kernels: C = A B or C = C + A B on operands that lie in cache.
//
// B and C have whole vectors of 16 columns; columns of C beyond `columns` are unspecified
// afterwards, but finite if B is padded with zeros. One description covers all products of
// attention without a transpose of the scores: A is read element by element through two strides, B
// vector by vector through two others.
//
// Each element of C is one chain of multiply-adds over the depth in ascending order, started from C
// (or 0). So its bits do not depend on how a product is cut into rows, columns or runs of depth.
#pragma once

#include <cstdint>

#include "kernels/choice.h"

namespace lra::kernels {

inline constexpr int64_t kGemmVector = 16;

struct GemmSize {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
};

struct GemmOperands {
  const float* a = nullptr;  // A(i, d) = a[i * a_row + d * a_depth]
  int64_t a_row = 0, a_depth = 1;
  const float* b = nullptr;  // B(d, 16 v + lane) = b[d * b_depth + v * b_vector + lane]
  int64_t b_depth = 0, b_vector = kGemmVector;
  float* c = nullptr;  // C(i, 16 v + lane) = c[i * c_row + 16 v + lane]
  int64_t c_row = 0;
};

// C must not overlap A or B. No alignment is required. Error against an fp64 reference: that of a
// chain of `depth` roundings (gemm_test.cpp).
void gemm(const GemmSize& size, const GemmOperands& operands, bool accumulate);

LRA_DECLARE_KERNELS(void gemm(const GemmSize& size, const GemmOperands& operands, bool accumulate);)

}  // namespace lra::kernels
