// What the AVX-512 attention passes share: heads packed into the operands of gemm.h and pairs.h,
// and the dropout decisions of one row of a tile. T is float or Bf16.
#pragma once

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/attention_tiles.h"

namespace lra::kernels::avx512 {

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
template <typename T>
HeadRows<T> query_rows(const AttentionProblem& problem, const HeadView<const T>& view,
                       const AttentionPlane& plane);
template <typename T>
HeadRows<T> key_rows(const AttentionProblem& problem, const HeadView<const T>& view,
                     const AttentionPlane& plane);

// How the products of attention are taken. Operands are made of words of 32 bits: a float, or two
// bfloat16 numbers that are neighbours in depth. Masked rows, rows from `length` on and padding are
// 0; `padded` is dim rounded up to 16. Ranges of transposed rows begin and end at multiples of 16.
struct FloatProducts {
  static constexpr int64_t kWordDepth = 1;  // numbers in a word
  static int64_t words(int64_t depth) { return depth; }

  // Depth along E: packed[(row - range.begin) * padded / kWordDepth + word].
  template <typename T>
  static void pack_rows(const HeadRows<T>& rows, KeyRange range, float* packed);
  // Depth along the rows: packed[(row - range.begin) / kWordDepth * padded + e].
  template <typename T>
  static void pack_down(const HeadRows<T>& rows, KeyRange range, float* packed) {
    pack_rows(rows, range, packed);
  }
  // Depth along E, in blocks of sixteen rows: packed[(row / 16 * words(dim) + word) * 16 + row %
  // 16].
  template <typename T>
  static void pack_transposed(const HeadRows<T>& rows, KeyRange range, float* packed);
};

struct PairProducts {
  static constexpr int64_t kWordDepth = 2;
  static int64_t words(int64_t depth) { return (depth + 1) / 2; }

  static void pack_rows(const HeadRows<Bf16>& rows, KeyRange range, float* packed);
  static void pack_down(const HeadRows<Bf16>& rows, KeyRange range, float* packed);
  static void pack_transposed(const HeadRows<Bf16>& rows, KeyRange range, float* packed);
};

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

// The lanes of the tile that one query sees; `space` is used where queries differ.
const uint16_t* lanes_of_query(const AttentionProblem& problem, const AttentionPlane& plane,
                               const ScoreTile& tile, int64_t query,
                               uint16_t (&space)[kTileVectors]);

// Bit n of element v of the result: dropout keeps the weight of `query` and key 16 (first_vector +
// v) + n of the tile. The result points into `space`.
inline constexpr int64_t kTileKeeps = kTileVectors;
const uint16_t* tile_keeps(const AttentionProblem& problem, const AttentionPlane& plane,
                           const ScoreTile& tile, int64_t query, uint16_t (&space)[kTileKeeps]);

}  // namespace lra::kernels::avx512
