#include "kernels/attention_pack.h"
#include "kernels/simd.h"

namespace lra::kernels::avx512 {
namespace {

HeadRows rows_of(const HeadView<const float>& view, const AttentionPlane& plane, int64_t length,
                 int64_t dim, const uint8_t* mask) {
  return {view.row(plane.batch, plane.head, 0),
          view.row_stride,
          length,
          dim,
          mask == nullptr ? nullptr : mask + plane.batch * length,
          plane.runs};
}

__m512 load_row(const HeadRows& rows, int64_t row, int64_t first) {
  // Rows of a [B, L, H, E] tensor lie too far apart for the processor to foresee; without this,
  // attention in blocks of 50 takes 15 % longer.
  constexpr int64_t kAhead = 12;
  if (row + kAhead < rows.length) {
    _mm_prefetch(rows.row(row + kAhead) + first, _MM_HINT_T0);
  }
  if (!rows.is_valid(row)) return _mm512_setzero_ps();
  return _mm512_maskz_loadu_ps(lanes_between(0, rows.dim - first), rows.row(row) + first);
}

}  // namespace

HeadRows query_rows(const AttentionProblem& problem, const HeadView<const float>& view,
                    const AttentionPlane& plane) {
  return rows_of(view, plane, problem.shape.query_length, problem.shape.head_dim,
                 problem.visible.query_mask);
}

HeadRows key_rows(const AttentionProblem& problem, const HeadView<const float>& view,
                  const AttentionPlane& plane) {
  return rows_of(view, plane, problem.shape.key_length, problem.shape.head_dim,
                 problem.visible.key_mask);
}

void pack_rows(const HeadRows& rows, KeyRange range, float* packed) {
  const int64_t padded = round_up(rows.dim, kLanes);
  for (int64_t i = range.begin; i < range.end; ++i) {
    for (int64_t e = 0; e < rows.dim; e += kLanes) {
      _mm512_storeu_ps(packed + (i - range.begin) * padded + e, load_row(rows, i, e));
    }
  }
}

void pack_transposed(const HeadRows& rows, KeyRange range, float* packed) {
  for (int64_t i = range.begin; i < range.end; i += kLanes) {
    for (int64_t e = 0; e < rows.dim; e += kLanes) {
      __m512 block[kLanes];
#pragma GCC unroll 16
      for (int n = 0; n < kLanes; ++n) block[n] = load_row(rows, i + n, e);
      transpose_16x16(block);
      float* to = packed + i * rows.dim + e * kLanes;
#pragma GCC unroll 16
      for (int n = 0; n < kLanes; ++n) {
        if (e + n < rows.dim) _mm512_storeu_ps(to + n * kLanes, block[n]);
      }
    }
  }
}

void unpack_row(const float* packed, int64_t dim, float factor, float* to) {
  const __m512 factors = _mm512_set1_ps(factor);
  for (int64_t e = 0; e < dim; e += kLanes) {
    const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(packed + e), factors);
    _mm512_mask_storeu_ps(to + e, lanes_between(0, dim - e), x);
  }
}

void unpack_rows(const float* packed, KeyRange range, int64_t dim, const AttentionPlane& plane,
                 const HeadView<float>& to) {
  const int64_t padded = round_up(dim, kLanes);
  for (int64_t i = range.begin; i < range.end; ++i) {
    unpack_row(packed + i * padded, dim, 1, to.row(plane.batch, plane.head, plane.runs.row(i)));
  }
}

const uint16_t* lanes_of_query(const AttentionProblem& problem, const AttentionPlane& plane,
                               const ScoreTile& tile, int64_t query,
                               uint16_t (&space)[kTileVectors]) {
  if (!tile.rows_differ) return tile.lanes;
  fill_row_lanes(problem, plane, tile, query, space);
  hide_earlier_pairs(plane.runs, query, tile.first_key(), tile.vectors, space);
  return space;
}

const uint16_t* tile_keeps(const AttentionProblem& problem, const AttentionPlane& plane,
                           const ScoreTile& tile, int64_t query, uint16_t (&space)[kTileKeeps]) {
  const uint32_t threshold = dropout_threshold(problem.dropout_rate);
  const int64_t end = tile.first_vector + tile.vectors;
  uint16_t* kept = space;
  // A tile may begin inside a group of columns, but does not cross a multiple of kKeyTile.
  for (int64_t g = tile.first_vector / kDropoutGroupVectors; g * kDropoutGroupVectors < end; ++g) {
    dropout_keeps(problem.dropout_key, threshold, plane.index, static_cast<uint32_t>(query), g,
                  kept);
    kept += kDropoutGroupVectors;
  }
  return space + tile.first_vector % kDropoutGroupVectors;
}

}  // namespace lra::kernels::avx512
