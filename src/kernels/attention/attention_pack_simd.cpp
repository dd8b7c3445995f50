#include "kernels/attention/attention_pack.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

template <typename T>
HeadRows<T> rows_of(const HeadView<const T>& view, const AttentionPlane& plane, int64_t length,
                    int64_t dim, const uint8_t* mask) {
  return {view.row(plane.batch, plane.head, 0),
          view.row_stride,
          length,
          dim,
          mask == nullptr ? nullptr : mask + plane.batch * length,
          plane.runs};
}

}  // namespace

template <typename T>
HeadRows<T> query_rows(const AttentionProblem& problem, const HeadView<const T>& view,
                       const AttentionPlane& plane, int64_t dim) {
  return rows_of(view, plane, problem.shape.query_length, dim, problem.visible.query_mask);
}

template <typename T>
HeadRows<T> key_rows(const AttentionProblem& problem, const HeadView<const T>& view,
                     const AttentionPlane& plane, int64_t dim) {
  return rows_of(view, plane, problem.shape.key_length, dim, problem.visible.key_mask);
}

template <typename T>
void unpack_row(const float* packed, int64_t dim, float factor, T* to) {
  const Floats factors = broadcast(factor);
  for (int64_t e = 0; e < dim; e += kLanes) {
    const Floats x = load(packed + e) * factors;
    store_lanes(to + e, lanes_between(0, dim - e), x);
  }
}

template <typename T>
void unpack_rows(const float* packed, KeyRange range, int64_t dim, const AttentionPlane& plane,
                 const HeadView<T>& to) {
  const int64_t padded = round_up(dim, kLanes);
  for (int64_t i = range.begin; i < range.end; ++i) {
    unpack_row(packed + i * padded, dim, 1, to.row(plane.batch, plane.head, plane.runs.row(i)));
  }
}

#define LRA_INSTANTIATE(T)                                                           \
  template HeadRows<T> query_rows(const AttentionProblem&, const HeadView<const T>&, \
                                  const AttentionPlane&, int64_t);                   \
  template HeadRows<T> key_rows(const AttentionProblem&, const HeadView<const T>&,   \
                                const AttentionPlane&, int64_t);                     \
  template void unpack_rows(const float*, KeyRange, int64_t, const AttentionPlane&,  \
                            const HeadView<T>&);                                     \
  template void unpack_row(const float*, int64_t, float, T*);
LRA_INSTANTIATE(float)
LRA_INSTANTIATE(Bf16)
#undef LRA_INSTANTIATE

void start_from_bias(const AttentionProblem& problem, const ScoreBias<const float>& bias,
                     const AttentionPlane& plane, const ScoreTile& tile, float* scores,
                     int64_t stride) {
  const Floats factor = broadcast(static_cast<float>(1 / problem.scale));
  const int64_t keys = problem.shape.key_length - tile.first_key();
  for (int64_t i = tile.queries.begin; i < tile.queries.end; ++i) {
    const float* from = bias.row(plane.head, i) + tile.first_key();
    float* to = scores + (i - tile.queries.begin) * stride;
    for (int64_t v = 0; v < tile.vectors; ++v) {
      const Lanes lanes = lanes_between(0, keys - v * kLanes);
      const Floats value = load_lanes(lanes, from + v * kLanes);
      store(to + v * kLanes, value * factor);
    }
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

}  // namespace lra::kernels::LRA_ISA
