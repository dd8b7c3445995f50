// Register-blocked products: a block of kRows x kVectors sums stays in registers over the whole
// depth; each step loads kVectors of B and broadcasts kRows elements of A. Included once by each
// file that has an instruction set for them: `Full` and `Half` are its vectors of sixteen and
// eight.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/gemm.h"

namespace lra::kernels {

// At most 24 of the 32 registers hold sums; eight sums in flight already hide the latency of a
// multiply-add (4 cycles, two a cycle), so narrow blocks need no more than eight rows.
inline constexpr int kMostVectors = 4;
inline constexpr int kMostRows = 8;
constexpr int rows_per_block(int vectors) { return vectors == 4 ? 6 : kMostRows; }

template <typename V, int kRows, int kVectors>
void multiply_block(const GemmOperands& o, int64_t depth, bool accumulate) {
  typename V::Vector sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum[i][v] = accumulate ? V::load(o.c + i * o.c_row + v * kGemmVector) : V::zero();
    }
  }
  const float* a = o.a;
  const float* b = o.b;
  for (int64_t d = 0; d < depth; ++d, a += o.a_depth, b += o.b_depth) {
    typename V::Vector b_d[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) b_d[v] = V::load(b + v * o.b_vector);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const typename V::Vector a_i = V::broadcast(a[i * o.a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] = V::multiply_add(a_i, b_d[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) V::store(o.c + i * o.c_row + v * kGemmVector, sum[i][v]);
  }
}

using BlockFunction = void (*)(const GemmOperands&, int64_t, bool);
using BlocksByRows = std::array<BlockFunction, kMostRows>;

// Element r is the block of r + 1 rows; null above rows_per_block(kVectors).
template <typename V, int kVectors>
constexpr BlocksByRows blocks_by_rows() {
  return []<size_t... r>(std::index_sequence<r...>) {
    BlocksByRows blocks{};
    ((blocks[r] = multiply_block<V, static_cast<int>(r) + 1, kVectors>), ...);
    return blocks;
  }
  (std::make_index_sequence<rows_per_block(kVectors)>{});
}

// Five to seven vectors are cut in two like halves: 4 + 1 would leave a block of one vector, which
// waits for its loads.
inline int64_t next_width(int64_t vectors) {
  if (vectors <= kMostVectors) return vectors;
  return vectors < 2 * kMostVectors ? (vectors + 1) / 2 : kMostVectors;
}

template <typename Full, typename Half>
struct GemmBlocks {
  static constexpr BlocksByRows kHalf = blocks_by_rows<Half, 1>();
  static constexpr BlocksByRows kFull[kMostVectors] = {
      blocks_by_rows<Full, 1>(), blocks_by_rows<Full, 2>(), blocks_by_rows<Full, 3>(),
      blocks_by_rows<Full, 4>()};
};

template <typename Full, typename Half>
void multiply_blocks(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  using Blocks = GemmBlocks<Full, Half>;
  GemmOperands block = operands;
  const int64_t vectors = (size.columns + kGemmVector - 1) / kGemmVector;
  int64_t width = 0;
  for (int64_t v = 0; v < vectors; v += width) {
    width = next_width(vectors - v);
    const bool half = size.columns <= kGemmVector / 2;
    const BlocksByRows& blocks = half ? Blocks::kHalf : Blocks::kFull[width - 1];
    const int64_t most_rows = rows_per_block(static_cast<int>(width));
    block.b = operands.b + v * operands.b_vector;
    for (int64_t i = 0; i < size.rows; i += most_rows) {
      const int64_t rows = std::min(most_rows, size.rows - i);
      block.a = operands.a + i * operands.a_row;
      block.c = operands.c + i * operands.c_row + v * kGemmVector;
      blocks[rows - 1](block, size.depth, accumulate);
    }
  }
}

}  // namespace lra::kernels
