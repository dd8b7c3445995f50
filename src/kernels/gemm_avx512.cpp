// Register-blocked products: a block of kRows x kVectors sums stays in registers over the whole
// depth; each step loads kVectors of B and broadcasts kRows elements of A.
#include "kernels/simd.h"

#include <algorithm>

#include "kernels/gemm.h"

namespace lra::kernels::avx512 {
namespace {

// At most 24 of the 32 registers hold sums; eight sums in flight already hide the latency of a
// multiply-add (4 cycles, two a cycle), so narrow blocks need no more than eight rows.
constexpr int kMostVectors = 4;
constexpr int kMostRows = 8;
constexpr int rows_per_block(int vectors) { return vectors == 4 ? 6 : kMostRows; }

template <int kRows, int kVectors>
void multiply_block(const GemmOperands& o, int64_t depth, bool accumulate) {
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum[i][v] =
          accumulate ? _mm512_loadu_ps(o.c + i * o.c_row + v * kGemmVector) : _mm512_setzero_ps();
    }
  }
  const float* a = o.a;
  const float* b = o.b;
  for (int64_t d = 0; d < depth; ++d, a += o.a_depth, b += o.b_depth) {
    __m512 b_d[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) b_d[v] = _mm512_loadu_ps(b + v * o.b_vector);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const __m512 a_i = _mm512_set1_ps(a[i * o.a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] = _mm512_fmadd_ps(a_i, b_d[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(o.c + i * o.c_row + v * kGemmVector, sum[i][v]);
    }
  }
}

using BlockFunction = void (*)(const GemmOperands&, int64_t, bool);

// [vectors - 1][rows - 1]
constexpr BlockFunction kBlocks[kMostVectors][kMostRows] = {
    {multiply_block<1, 1>, multiply_block<2, 1>, multiply_block<3, 1>, multiply_block<4, 1>,
     multiply_block<5, 1>, multiply_block<6, 1>, multiply_block<7, 1>, multiply_block<8, 1>},
    {multiply_block<1, 2>, multiply_block<2, 2>, multiply_block<3, 2>, multiply_block<4, 2>,
     multiply_block<5, 2>, multiply_block<6, 2>, multiply_block<7, 2>, multiply_block<8, 2>},
    {multiply_block<1, 3>, multiply_block<2, 3>, multiply_block<3, 3>, multiply_block<4, 3>,
     multiply_block<5, 3>, multiply_block<6, 3>, multiply_block<7, 3>, multiply_block<8, 3>},
    {multiply_block<1, 4>, multiply_block<2, 4>, multiply_block<3, 4>, multiply_block<4, 4>,
     multiply_block<5, 4>, multiply_block<6, 4>, nullptr, nullptr},
};

// Five to seven vectors are cut in two like halves: 4 + 1 would leave a block of one vector, which
// waits for its loads.
int64_t next_width(int64_t vectors) {
  if (vectors <= kMostVectors) return vectors;
  return vectors < 2 * kMostVectors ? (vectors + 1) / 2 : kMostVectors;
}

}  // namespace

void gemm(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  GemmOperands block = operands;
  int64_t width = 0;
  for (int64_t v = 0; v < size.vectors; v += width) {
    width = next_width(size.vectors - v);
    const int64_t most_rows = rows_per_block(static_cast<int>(width));
    block.b = operands.b + v * operands.b_vector;
    for (int64_t i = 0; i < size.rows; i += most_rows) {
      const int64_t rows = std::min(most_rows, size.rows - i);
      block.a = operands.a + i * operands.a_row;
      block.c = operands.c + i * operands.c_row + v * kGemmVector;
      kBlocks[width - 1][rows - 1](block, size.depth, accumulate);
    }
  }
}

}  // namespace lra::kernels::avx512
