// Sums of outer products over rows: C = A^T B, the shape of every gradient of a weight, where rows
// are the tokens of a batch.
//
// Each block of C is computed by one thread. Rows are taken in runs of kOuterRun, each summed
// separately, and the runs are added in order, so the bits depend only on the operands.
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

inline constexpr int64_t kOuterRun = 512;
// The largest block of C that one call takes: together with the operands that AVX-512 code packs
// for it, it stays in a second-level cache of 1 MB.
inline constexpr int64_t kOuterRows = 256;
inline constexpr int64_t kOuterColumns = 288;

// Some columns of a matrix whose rows are row_stride apart.
template <typename T>
struct MatrixColumns {
  const T* data = nullptr;
  int64_t row_stride = 0;
  int64_t columns = 0;
};

// c[i * c_stride + j] = the sum over r < rows of A(r, i) B(r, j), for the columns i of a (at most
// kOuterRows) and j of b (at most kOuterColumns). c must not overlap a or b. Error against fp64:
// (kOuterRun + rows / kOuterRun) 2^-24 of the sum of absolute values, products of bfloat16
// included; with tiles (32 + rows / 256) 2^-24. With pairs (pairs.h) and tiles (simd/tiles.h)
// numbers below 2^-126 count as 0. double always runs the reference.
template <typename T>
void sum_outer_products(int64_t rows, const MatrixColumns<T>& a, const MatrixColumns<T>& b,
                        Wide<T>* c, int64_t c_stride);

// The same, and a_sums[i] = the sum over r of A(r, i), whose rows are read once for both. May be
// called if has_tiles(). Error of a_sums: (24 + rows / 256) 2^-24 of the sum of absolute values.
void sum_outer_products_and_rows(int64_t rows, const MatrixColumns<Bf16>& a,
                                 const MatrixColumns<Bf16>& b, float* c, int64_t c_stride,
                                 float* a_sums);

namespace ref {
template <typename T>
void sum_outer_products(int64_t rows, const MatrixColumns<T>& a, const MatrixColumns<T>& b,
                        Wide<T>* c, int64_t c_stride);
}
LRA_DECLARE_SIMD(template <typename T>
                 void sum_outer_products(int64_t rows, const MatrixColumns<T>& a,
                                         const MatrixColumns<T>& b, float* c, int64_t c_stride);)
namespace avx512_bf16 {
void sum_outer_products(int64_t rows, const MatrixColumns<Bf16>& a, const MatrixColumns<Bf16>& b,
                        float* c, int64_t c_stride);
}
LRA_DECLARE_TILES(void sum_outer_products(int64_t rows, const MatrixColumns<Bf16>& a,
                                          const MatrixColumns<Bf16>& b, float* c, int64_t c_stride,
                                          float* a_sums = nullptr))

}  // namespace lra::kernels
