// Products of tiles in shared memory on tensor cores. A block of four warps has tiles of 64 rows;
// each warp takes 16 of them. Included only by *.cu files.
#pragma once

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/warp.h"

namespace lra::kernels::cuda {

constexpr int kTile = 64, kThreads = 128, kWarpRows = 16;
constexpr int kSteps = kTile / 8;  // of eight columns, the width of one product

// Fragments in which values enter the tensor cores: of a 16-row operand (Rows) and of an 8-column
// one (Columns), or of two adjacent ones (Pair), over a depth of kDepth.
template <typename T>
struct Operand;

template <>
struct Operand<Bf16> {
  static constexpr int kDepth = 16, kPadding = 8;
  struct Rows {
    uint32_t words[4];
  };
  struct Columns {
    uint32_t words[2];
  };
  struct Pair {
    Columns first, second;
  };

  // Row `row` + 0..15 of a tile, from column `k` on.
  __device__ static Rows rows(const Bf16* tile, int stride, int row, int k) {
    const int lane = threadIdx.x % 32;
    Rows a;
    load_matrices(a.words, tile + (row + lane % 16) * stride + k + lane / 16 * 8);
    return a;
  }
  // Rows `column` + 0..7 of a tile as columns of the operand, and + 8..15 as those of a second.
  __device__ static Columns columns(const Bf16* tile, int stride, int column, int k) {
    const int lane = threadIdx.x % 32;
    Columns b;
    load_matrices(b.words, tile + (column + lane % 8) * stride + k + lane / 8 % 2 * 8);
    return b;
  }
  __device__ static Pair column_pair(const Bf16* tile, int stride, int column, int k) {
    const int lane = threadIdx.x % 32, row = column + lane / 16 * 8 + lane % 8;
    uint32_t words[4];
    load_matrices(words, tile + row * stride + k + lane / 8 % 2 * 8);
    return {{{words[0], words[1]}}, {{words[2], words[3]}}};
  }
  // Results of two steps of eight columns as rows of the next product.
  __device__ static Rows rows_of_results(const float (*c)[4]) {
    return {{pack_bf16(c[0][0], c[0][1]), pack_bf16(c[0][2], c[0][3]), pack_bf16(c[1][0], c[1][1]),
             pack_bf16(c[1][2], c[1][3])}};
  }
  // Columns `column` + 0..7 of a tile, of its rows `k` on: the depth that rows_of_results has.
  __device__ static Columns depth(const Bf16* tile, int stride, int k, int column) {
    Columns b;
    load_matrices_transposed(b.words, tile + (k + threadIdx.x % 16) * stride + column);
    return b;
  }
  __device__ static Pair depth_pair(const Bf16* tile, int stride, int k, int column) {
    const int lane = threadIdx.x % 32;
    uint32_t words[4];
    load_matrices_transposed(words, tile + (k + lane % 16) * stride + column + lane / 16 * 8);
    return {{{words[0], words[1]}}, {{words[2], words[3]}}};
  }
  __device__ static void multiply(float (&c)[4], const Rows& a, const Columns& b) {
    multiply_bf16(c, a.words, b.words);
  }
};

template <>
struct Operand<float> {
  static constexpr int kDepth = 8, kPadding = 4;
  struct Rows {
    float values[4];
  };
  struct Columns {
    float values[2];
  };
  struct Pair {
    Columns first, second;
  };

  __device__ static Rows rows(const float* tile, int stride, int row, int k) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float* at = tile + (row + g) * stride + k + t;
    return {{at[0], at[8 * stride], at[4], at[8 * stride + 4]}};
  }
  __device__ static Columns columns(const float* tile, int stride, int column, int k) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float* at = tile + (column + g) * stride + k + t;
    return {{at[0], at[4]}};
  }
  __device__ static Pair column_pair(const float* tile, int stride, int column, int k) {
    return {columns(tile, stride, column, k), columns(tile, stride, column + 8, k)};
  }
  // A result has columns 2t and 2t + 1 where an operand has t and t + 4. The order of a sum is
  // free: both operands take column 2t for t and 2t + 1 for t + 4.
  __device__ static Rows rows_of_results(const float (*c)[4]) {
    return {{c[0][0], c[0][2], c[0][1], c[0][3]}};
  }
  __device__ static Columns depth(const float* tile, int stride, int k, int column) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float* at = tile + (k + 2 * t) * stride + column + g;
    return {{at[0], at[stride]}};
  }
  __device__ static Pair depth_pair(const float* tile, int stride, int k, int column) {
    return {depth(tile, stride, k, column), depth(tile, stride, k, column + 8)};
  }
  // Terms of 11 bits that add up to the value except for 2^-22 of it.
  __device__ static void split(float value, uint32_t& high, uint32_t& low) {
    constexpr uint32_t kUpper = 0xFFFFE000;  // the bits of TF32
    high = __float_as_uint(value) & kUpper;
    low = __float_as_uint(value - __uint_as_float(high)) & kUpper;
  }
  __device__ static void multiply(float (&c)[4], const Rows& a, const Columns& b) {
    uint32_t a_high[4], a_low[4], b_high[2], b_low[2];
    for (int n = 0; n < 4; ++n) split(a.values[n], a_high[n], a_low[n]);
    for (int n = 0; n < 2; ++n) split(b.values[n], b_high[n], b_low[n]);
    multiply_tf32(c, a_low, b_high);
    multiply_tf32(c, a_high, b_low);
    multiply_tf32(c, a_high, b_high);
  }
};

template <typename T, int E>
constexpr int kStride = E + Operand<T>::kPadding;

// scores += x y^T: of the warp's 16 rows of one tile with all 64 rows of another.
template <typename T, int E>
__device__ inline void add_scores(float (&scores)[kSteps][4], const T* x, const T* y) {
  const int row = threadIdx.x / 32 * kWarpRows;
  for (int k = 0; k < E; k += Operand<T>::kDepth) {
    const auto a = Operand<T>::rows(x, kStride<T, E>, row, k);
#pragma unroll
    for (int n = 0; n < kSteps; n += 2) {
      const auto b = Operand<T>::column_pair(y, kStride<T, E>, n * 8, k);
      Operand<T>::multiply(scores[n], a, b.first);
      Operand<T>::multiply(scores[n + 1], a, b.second);
    }
  }
}

// sums += weights z: of the warp's 16 rows of weights with a tile of 64 rows. The products of a
// tile are summed on their own first: tensor cores round sums toward zero, which over thousands of
// columns would show.
template <typename T, int E>
__device__ inline void add_weighted(float (&sums)[E / 8][4], const float (&weights)[kSteps][4],
                                    const T* z) {
  constexpr int kStepsOfDepth = Operand<T>::kDepth / 8, kDepths = kSteps / kStepsOfDepth;
  typename Operand<T>::Rows rows[kDepths];
#pragma unroll
  for (int k = 0; k < kDepths; ++k) {
    rows[k] = Operand<T>::rows_of_results(weights + k * kStepsOfDepth);
  }
#pragma unroll
  for (int n = 0; n < E / 8; n += 2) {
    float part[2][4] = {};
#pragma unroll
    for (int k = 0; k < kDepths; ++k) {
      const auto b = Operand<T>::depth_pair(z, kStride<T, E>, k * Operand<T>::kDepth, n * 8);
      Operand<T>::multiply(part[0], rows[k], b.first);
      Operand<T>::multiply(part[1], rows[k], b.second);
    }
    for (int element = 0; element < 4; ++element) {
      sums[n][element] += part[0][element];
      sums[n + 1][element] += part[1][element];
    }
  }
}

}  // namespace lra::kernels::cuda
