// Code that the attention passes in vector code share: heads packed into the operands of gemm.h and
// pairs.h, and the dropout decisions of one row of a tile. T is float or Bf16.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

// One head of a [B, H, N, E] tensor: `length` rows of `dim` numbers, some of them masked.
template <typename T>
struct HeadRows {
  const T* data = nullptr;
  int64_t row_stride = 0;
  int64_t length = 0;
  int64_t dim = 0;
  const uint8_t* mask = nullptr;  // [length]; null: all rows are valid
  PlaneRuns runs = {};            // whose order the rows are taken in

  const T* row(int64_t n) const { return data + runs.row(n) * row_stride; }
  bool is_valid(int64_t row) const { return row < length && (mask == nullptr || mask[row] != 0); }
};
// `dim` wide.
template <typename T>
HeadRows<T> query_rows(const AttentionProblem& problem, const HeadView<const T>& view,
                       const AttentionPlane& plane, int64_t dim);
template <typename T>
HeadRows<T> key_rows(const AttentionProblem& problem, const HeadView<const T>& view,
                     const AttentionPlane& plane, int64_t dim);

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Sixteen floats more than a tile of scores is wide, lest all rows of a column share a set of the
// cache.
inline constexpr int64_t kScoreStride = kKeyTile + kLanes;

// A finished tile of the backward pass as operands of its last three products: the gradients of
// scores with depth along the keys, `row_stride` apart, and both arrays with depth along the
// queries, kScoreStride apart.
struct FinishedTile {
  float* rows = nullptr;
  int64_t row_stride = 0;
  float *weights_down = nullptr, *grads_down = nullptr;
};

// Rows of a [B, L, H, E] tensor are too far apart for the processor's prefetcher; without this,
// attention in blocks of 50 takes 15 % longer.
template <typename T>
void fetch_ahead(const HeadRows<T>& rows, int64_t row, int64_t first) {
  constexpr int64_t kAhead = 12;
  if (row + kAhead < rows.length) __builtin_prefetch(rows.row(row + kAhead) + first);
}

// Sixteen numbers of a row as float, from number `first` on.
template <typename T>
Floats load_row(const HeadRows<T>& rows, int64_t row, int64_t first) {
  fetch_ahead(rows, row, first);
  if (!rows.is_valid(row)) return zeros();
  return load_lanes(lanes_between(0, rows.dim - first), rows.row(row) + first);
}

// [rows, words] to blocks of sixteen rows.
template <typename Load>
void transpose_rows(KeyRange range, int64_t words, float* packed, const Load& load) {
  for (int64_t i = range.begin; i < range.end; i += kLanes) {
    for (int64_t w = 0; w < words; w += kLanes) {
      Floats block[kLanes];
#pragma GCC unroll 16
      for (int n = 0; n < kLanes; ++n) block[n] = load(i + n, w);
      transpose_16x16(block);
      float* to = packed + i * words + w * kLanes;
#pragma GCC unroll 16
      for (int n = 0; n < kLanes; ++n) {
        if (w + n < words) store(to + n * kLanes, block[n]);
      }
    }
  }
}

// Rows [range.begin, range.end) of an array [length, padded] of float back to one head of a tensor.
template <typename T>
void unpack_rows(const float* packed, KeyRange range, int64_t dim, const AttentionPlane& plane,
                 const HeadView<T>& to);
// One row times `factor`.
template <typename T>
void unpack_row(const float* packed, int64_t dim, float factor, T* to);

// Fills the scores of a tile, rows `stride` apart, with bias / scale: where the product of queries
// and keys then adds to.
void start_from_bias(const AttentionProblem& problem, const ScoreBias<const float>& bias,
                     const AttentionPlane& plane, const ScoreTile& tile, float* scores,
                     int64_t stride);

// Negates the scores of a row, for a negative scale.
inline void negate_row(float* scores, int64_t vectors) {
  for (int64_t v = 0; v < vectors; ++v) {
    store(scores + v * kLanes, zeros() - load(scores + v * kLanes));
  }
}

// The lanes of the tile that one query sees; `space` is used where queries differ.
const uint16_t* lanes_of_query(const AttentionProblem& problem, const AttentionPlane& plane,
                               const ScoreTile& tile, int64_t query,
                               uint16_t (&space)[kTileVectors]);

// Bit n of element v of the result: dropout keeps the weight of `query` and key 16 (first_vector +
// v) + n of the tile. The result points into `space`.
inline constexpr int64_t kTileKeeps = kTileVectors;
const uint16_t* tile_keeps(const AttentionProblem& problem, const AttentionPlane& plane,
                           const ScoreTile& tile, int64_t query, uint16_t (&space)[kTileKeeps]);

}  // namespace lra::kernels::LRA_ISA
