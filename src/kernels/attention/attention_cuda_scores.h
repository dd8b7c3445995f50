// Scores of attention in rows of queries, and dropout of their weights, on a CUDA device.
#pragma once

#include "base/rng.h"
#include "kernels/attention/attention_cuda_tiles.h"

namespace lra::kernels::cuda {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kInfinity = __builtin_huge_valf(), kNaN = __builtin_nanf("");

// Bit n is whether dropout takes the weight of a query and key n * 16 + place of a group of 128
// keys, which share a block of random numbers; `counter` is group * 16 + place.
__device__ inline uint32_t drops_of_place(const CudaAttention& p, int plane, uint32_t query,
                                          uint32_t counter) {
  const PhiloxBlock random =
      philox4x32({counter, query, static_cast<uint32_t>(plane), 0}, p.dropout_key);
  uint32_t bits = 0;
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    const uint32_t low = (random[word] & 0xFFFF) < p.dropout_threshold;
    const uint32_t high = (random[word] >> 16) < p.dropout_threshold;
    bits |= (low | high << 1) << 2 * word;
  }
  return bits;
}

// True for attention weights of one plane that are dropped. Neighboring decisions share a block of
// random numbers, which is kept.
class Dropped {
 public:
  __device__ Dropped(const CudaAttention& p, int plane) : p_(p), plane_(plane) {}
  __device__ bool operator()(uint32_t query, uint32_t key) {
    const uint32_t counter = key / 128 * 16 + key % 16;
    if (counter != counter_ || query != query_) {
      counter_ = counter;
      query_ = query;
      bits_ = drops_of_place(p_, plane_, query, counter);
    }
    return (bits_ >> key % 128 / 16 & 1) != 0;
  }

 private:
  const CudaAttention& p_;
  int plane_;
  uint32_t counter_ = ~0u, query_ = ~0u, bits_ = 0;
};

// The decisions of a lane's pairs in tiles of 64 neighboring keys from a multiple of 64 on. A block
// of random numbers decides on eight of 128 keys, four in each of two tiles, so numbers made for
// one tile serve the other.
class DropBits {
 public:
  __device__ static bool fit(const Indices& columns) {
    return columns.first >= 0 && columns.first % kTile == 0;
  }

  // Bit step * 4 + element of the lane's pairs; `rows` are queries, and the same in every call.
  __device__ uint32_t operator()(const CudaAttention& p, int plane, const Indices& rows,
                                 int first_key) {
    if (first_key / 128 != group_) make(p, plane, rows, first_key / 128);
    return first_key % 128 == 0 ? bits_[0] : bits_[1];
  }

 private:
  __device__ void make(const CudaAttention& p, int plane, const Indices& rows, int group) {
    group_ = group;
    bits_[0] = bits_[1] = 0;
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * kWarpRows + lane / 4;
#pragma unroll 2
    for (int n = 0; n < 8; ++n) {  // steps 0 and 1, of each four elements
      const uint32_t place = n / 4 * 8 + lane % 4 * 2 + n % 2;  // of 16
      const auto query = static_cast<uint32_t>(rows.axis[row + n / 2 % 2 * 8]);
      const PhiloxBlock random = philox4x32(
          {static_cast<uint32_t>(group) * 16 + place, query, static_cast<uint32_t>(plane), 0},
          p.dropout_key);
      for (int word = 0; word < 4; ++word) {
        const uint32_t low = (random[word] & 0xFFFF) < p.dropout_threshold;
        const uint32_t high = (random[word] >> 16) < p.dropout_threshold;
        bits_[word / 2] |= (low | high << 8) << (word % 2 * 16 + n);
      }
    }
  }

  int group_ = -1;
  uint32_t bits_[2] = {};
};

// Calls use(step, element, row, column) for the pairs of this lane.
template <typename F>
__device__ inline void for_each_pair(const Indices& rows, const Indices& columns, F use) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * kWarpRows + lane / 4;
#pragma unroll
  for (int element = 0; element < 4; ++element) {
    const int in_axis = rows.axis[row + element / 2 * 8];
    // Every second step first: columns 16 apart share their random numbers.
#pragma unroll
    for (int turn = 0; turn < kSteps; ++turn) {
      const int step = turn % (kSteps / 2) * 2 + turn / (kSteps / 2);
      use(step, element, in_axis, columns.axis[step * 8 + lane % 4 * 2 + element % 2]);
    }
  }
}

// The factor that turns the difference of two scores into the exponent of 2 that is the ratio of
// their weights.
__device__ inline float log2_scale(const CudaAttention& p) { return fabsf(p.scale) * kLog2E; }

// The weight of a score by the Laplace function, 0.5 (1 + erf(u)) with u = (score - sqrt(1/2))
// sqrt(2 pi), and its derivative, sqrt(2) exp(-u^2). The tail is the rational fit erfcc of Press et
// al., Numerical Recipes, section 6.2, to 4e-7 of it.
__device__ inline float laplace_argument(float score) {
  constexpr float kRootOfTwoPi = 2.50662827463100050f, kRootOfPi = 1.77245385090551603f;
  return score * kRootOfTwoPi - kRootOfPi;
}
__device__ inline float laplace_weight(float score) {
  const float u = laplace_argument(score), z = fabsf(u), t = fast_divide(1, 1 + 0.5f * z);
  constexpr float kFit[] = {-0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f,
                            0.09678418f,  0.37409196f, 1.00002368f,  -1.26551223f};
  float y = 0.17087277f;
  for (const float number : kFit) y = y * t + number;
  const float tail = 0.5f * t * fast_exp2((y - z * z) * kLog2E);
  return u > 0 ? 1 - tail : tail;
}
__device__ inline float laplace_slope(float score) {
  const float u = laplace_argument(score);
  return 1.41421356237309505f * fast_exp2(-u * u * kLog2E);
}

// Adds biases, times a factor, to the scores of neighboring columns that all rows see. Rows beyond
// the last, which nobody reads, take its biases.
template <bool kRowsAreQueries>
__device__ inline void add_bias(const RowTile& tile, int first_column,
                                const ScoreBias<const float>& bias, float factor,
                                float (&scores)[kSteps][4]) {
  const int lane = threadIdx.x % 32, row = tile.begin + threadIdx.x / 32 * kWarpRows + lane / 4;
  const int column = first_column + lane % 4 * 2;
  const int64_t of_row = kRowsAreQueries ? bias.row_stride : 1;
  const int64_t of_column = kRowsAreQueries ? 1 : bias.row_stride;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* at = bias.data + tile.head * bias.head_stride +
                      min(row + half * 8, tile.end - 1) * of_row + column * of_column;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        scores[step][half * 2 + odd] += at[(step * 8 + odd) * of_column] * factor;
      }
    }
  }
}

// Turns products of queries and keys into scores divided by |scale|, -infinity for pairs that do
// not see each other, and returns whether there can be such.
template <bool kRowsAreQueries>
__device__ inline bool finish_scores(const CudaAttention& p, const RowTile& tile,
                                     const Indices& rows, const Indices& columns,
                                     const ScoreBias<const float>& bias,
                                     float (&scores)[kSteps][4]) {
  if (columns.seen_by_all && bias.data == nullptr) return false;
  const float of_bias = 1 / p.scale;
  if (columns.seen_by_all && columns.first >= 0) {
    add_bias<kRowsAreQueries>(tile, columns.first, bias, of_bias, scores);
    return false;
  }
  for_each_pair(rows, columns, [&](int step, int element, int row, int column) {
    const int query = kRowsAreQueries ? row : column, key = kRowsAreQueries ? column : row;
    float& score = scores[step][element];
    if (query < 0 || key < 0 || !sees(p, tile, query, key)) {
      score = -kInfinity;
    } else {
      if (p.scale < 0) score = -score;
      if (bias.data != nullptr) score += bias.row(tile.head, query)[key] * of_bias;
      if (score == -kInfinity) score = kNaN;  // an overflow
    }
  });
  return true;
}

// Calls drop(step, element) for the pairs that dropout takes, in rows of queries.
template <typename F>
__device__ inline void for_each_dropped(const CudaAttention& p, const RowTile& tile,
                                        const Indices& rows, const Indices& columns,
                                        DropBits& drop_bits, F drop) {
  if (DropBits::fit(columns)) {
    const uint32_t bits = drop_bits(p, tile.plane, rows, columns.first);
#pragma unroll
    for (int n = 0; n < 4 * kSteps; ++n) {
      if ((bits >> n & 1) != 0) drop(n / 4, n % 4);
    }
    return;
  }
  Dropped dropped(p, tile.plane);
  for_each_pair(rows, columns, [&](int step, int element, int query, int key) {
    if (query >= 0 && key >= 0 && dropped(query, key)) drop(step, element);
  });
}

}  // namespace lra::kernels::cuda
