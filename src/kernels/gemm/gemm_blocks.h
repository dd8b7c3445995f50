// Register-blocked products: a block of kRows rows and kRegisters registers of sums stays in
// registers over the whole depth; each step loads kRegisters of B and broadcasts kRows elements of
// A. Included once by each file that has an instruction set for them: `Full` and `Half` are its
// registers (simd/simd_*.h), `Half` those for products of at most eight columns.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/gemm/gemm.h"

namespace lra::kernels {

inline constexpr int kMostRows = 8;

template <typename V, int kRows, int kRegisters>
void multiply_block(const GemmOperands& o, int64_t depth, bool accumulate) {
  constexpr int kInVector = kGemmVector / V::kFloats;
  const auto column = [](int r) { return r * V::kFloats; };
  typename V::Vector sum[kRows][kRegisters];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kRegisters; ++r) {
      sum[i][r] = accumulate ? V::load(o.c + i * o.c_row + column(r)) : V::zero();
    }
  }
  const float* a = o.a;
  const float* b = o.b;
  for (int64_t d = 0; d < depth; ++d, a += o.a_depth, b += o.b_depth) {
    typename V::Vector b_d[kRegisters];
#pragma GCC unroll 4
    for (int r = 0; r < kRegisters; ++r) {
      b_d[r] = V::load(b + r / kInVector * o.b_vector + column(r % kInVector));
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const typename V::Vector a_i = V::broadcast(a[i * o.a_row]);
#pragma GCC unroll 4
      for (int r = 0; r < kRegisters; ++r) sum[i][r] = V::multiply_add(a_i, b_d[r], sum[i][r]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kRegisters; ++r) V::store(o.c + i * o.c_row + column(r), sum[i][r]);
  }
}

using BlockFunction = void (*)(const GemmOperands&, int64_t, bool);
using BlocksByRows = std::array<BlockFunction, kMostRows>;

// Element r is the block of r + 1 rows and `kVectors` vectors; null above rows_per_block(kVectors).
template <typename V, int kVectors, int kRegisters>
constexpr BlocksByRows blocks_by_rows() {
  return []<size_t... r>(std::index_sequence<r...>) {
    BlocksByRows blocks{};
    ((blocks[r] = multiply_block<V, static_cast<int>(r) + 1, kRegisters>), ...);
    return blocks;
  }
  (std::make_index_sequence<V::rows_per_block(kVectors)>{});
}

// Element v holds the blocks of v + 1 vectors.
template <typename V>
constexpr auto blocks_by_vectors() {
  return []<size_t... v>(std::index_sequence<v...>) {
    return std::array<BlocksByRows, V::kMostVectors>{
        blocks_by_rows<V, static_cast<int>(v) + 1,
                       (static_cast<int>(v) + 1) * kGemmVector / V::kFloats>()...};
  }
  (std::make_index_sequence<V::kMostVectors>{});
}

// Five to seven vectors are cut in two like halves: 4 + 1 would leave a block of one vector, which
// waits for its loads.
template <typename V>
int64_t next_width(int64_t vectors) {
  if (vectors <= V::kMostVectors) return vectors;
  return vectors < 2 * V::kMostVectors ? (vectors + 1) / 2 : V::kMostVectors;
}

template <typename Full, typename Half>
struct GemmBlocks {
  static constexpr auto kFull = blocks_by_vectors<Full>();
  static constexpr BlocksByRows kHalf = blocks_by_rows<Half, 1, 1>();
};

template <typename Full, typename Half>
void multiply_blocks(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  using Blocks = GemmBlocks<Full, Half>;
  GemmOperands block = operands;
  const bool half = size.columns <= kGemmVector / 2;
  const int64_t vectors = (size.columns + kGemmVector - 1) / kGemmVector;
  int64_t width = 0;
  for (int64_t v = 0; v < vectors; v += width) {
    width = next_width<Full>(vectors - v);
    const BlocksByRows& blocks = half ? Blocks::kHalf : Blocks::kFull[width - 1];
    const int64_t most_rows =
        half ? Half::rows_per_block(1) : Full::rows_per_block(static_cast<int>(width));
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
