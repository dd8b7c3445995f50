// What the AVX-512 attention passes share: heads packed into the operands of gemm.h, and the
// dropout decisions of one row of a tile.
#pragma once

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/attention_tiles.h"

namespace lra::kernels::avx512 {

// One head of a [B, H, N, E] tensor: `length` rows of `dim` floats, some of them masked.
struct HeadRows {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t length = 0;
  int64_t dim = 0;
  const uint8_t* mask = nullptr;  // [length]; null: all rows are valid
  PlaneRuns runs = {};            // whose order the rows are taken in

  const float* row(int64_t n) const { return data + runs.row(n) * row_stride; }
  bool is_valid(int64_t row) const { return row < length && (mask == nullptr || mask[row] != 0); }
};
HeadRows query_rows(const AttentionProblem& problem, const HeadView<const float>& view,
                    const AttentionPlane& plane);
HeadRows key_rows(const AttentionProblem& problem, const HeadView<const float>& view,
                  const AttentionPlane& plane);

// Rows [range.begin, range.end) to packed[(row - range.begin) * padded + e], padded = dim rounded
// up to 16. Masked rows, rows from `length` on and the padding become 0.
void pack_rows(const HeadRows& rows, KeyRange range, float* packed);

// The same transposed, in blocks of sixteen rows: packed[(row / 16 * dim + e) * 16 + row % 16].
// `range` begins and ends at multiples of 16.
void pack_transposed(const HeadRows& rows, KeyRange range, float* packed);

// Rows [range.begin, range.end) of a packed array back to one head of a tensor.
void unpack_rows(const float* packed, KeyRange range, int64_t dim, const AttentionPlane& plane,
                 const HeadView<float>& to);
// One row times `factor`.
void unpack_row(const float* packed, int64_t dim, float factor, float* to);

// The lanes of the tile that one query sees; `space` is used where queries differ.
const uint16_t* lanes_of_query(const AttentionProblem& problem, const AttentionPlane& plane,
                               const ScoreTile& tile, int64_t query,
                               uint16_t (&space)[kTileVectors]);

// Bit n of element v of the result: dropout keeps the weight of `query` and key 16 (first_vector +
// v)
// + n of the tile. The result points into `space`.
inline constexpr int64_t kTileKeeps = kTileVectors;
const uint16_t* tile_keeps(const AttentionProblem& problem, const AttentionPlane& plane,
                           const ScoreTile& tile, int64_t query, uint16_t (&space)[kTileKeeps]);

}  // namespace lra::kernels::avx512
