// Tiled attention, backward (FlashAttention, algorithm 4): the weights of a tile are recomputed
// from the largest score and the sum of each row, and the five products of a tile are taken while
// it is in cache.
//
// A unit of work is a whole plane, or, when planes are few, a tile of queries (for grad_q) and a
// run of keys (for grad_k and grad_v), at the price of seven products instead of five. Every
// element of a gradient is one chain of multiply-adds in the same order in both, so the bits are
// the same.
#pragma once

#include "base/parallel.h"
#include "kernels/aligned_buffer.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_pack.h"
#include "kernels/attention/attention_slopes.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/gemm/gemm.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

// The operands and the gradients of one plane, packed (attention_simd.cpp).
struct PlaneData {
  AlignedBuffer buffers[12];
  float *q, *grad_out;                 // [L][row_words]
  float *q_down, *grad_out_down;       // one block for each tile of queries
  float* k_down;                       // [words of S][padded], and kSpareRows
  float *k_transposed, *v_transposed;  // [S / 16][words of E][16]
  float *grad_k, *grad_v;              // sums, as Products::store_keys reads them
  float *shift, *one_over_sum, *mean;  // [L]: the largest score; see mean_of
  std::vector<uint16_t> key_lanes;
};

struct BackwardScratch {
  AlignedBuffer scores, grad_scores, grad_rows, weights_down, grads_down, grad_q;
  TileList list;
};

inline PlaneData& thread_plane() {
  thread_local PlaneData data;
  return data;
}
inline BackwardScratch& backward_scratch() {
  thread_local BackwardScratch scratch;
  return scratch;
}

// Where finished rows go: in the place of the scores and gradients if words are floats.
template <typename Products>
FinishedTile reserve_finished(BackwardScratch& scratch, float* scores, float* grads) {
  if constexpr (Products::kWordDepth == 1) return {grads, kScoreStride, scores, grads};
  constexpr int64_t kRow = kScoreStride / 2 + kLanes / 2;  // whole cache lines
  constexpr int64_t kDown = kQueryTile / 2 * kScoreStride;
  return {scratch.grad_rows.reserve(kQueryTile * kRow), kRow, scratch.weights_down.reserve(kDown),
          scratch.grads_down.reserve(kDown)};
}

enum class Wanted { kAll, kQueries, kKeys };

template <typename T, typename Products>
class BackwardPlane {
 public:
  // `tiles` are those of query_tiles().
  BackwardPlane(const AttentionProblem& problem, const AttentionBackward<T>& args,
                const std::vector<KeyRange>& tiles, int64_t index)
      : problem_(problem),
        args_(args),
        tiles_(tiles),
        plane_(plane_of(problem, index)),
        data_(thread_plane()),
        dim_(problem.shape.head_dim),
        padded_(round_up(dim_, kLanes)),
        words_(Products::words(dim_)),
        row_words_(Products::row_words(dim_)),
        down_rows_(round_up(tiles[0].end - tiles[0].begin, Products::kQueryStep)),
        threshold_(dropout_threshold(problem.dropout_rate)) {
    const int64_t queries = problem.shape.query_length;
    const int64_t keys = round_up(problem.shape.key_length, kLanes);
    AlignedBuffer* buffer = data_.buffers;
    for (float** rows : {&data_.q, &data_.grad_out}) {
      *rows = (buffer++)->reserve((queries + Products::kSpareRows) * row_words_);
    }
    data_.q_down = data_.q;
    data_.grad_out_down = data_.grad_out;
    if constexpr (kWordDepth > 1) {
      const auto count = static_cast<int64_t>(tiles.size());
      for (float** rows : {&data_.q_down, &data_.grad_out_down}) {
        *rows = (buffer++)->reserve(count * down_rows_ / kWordDepth * padded_);
      }
    }
    data_.k_down = (buffer++)->reserve((keys + Products::kSpareRows) / kWordDepth * padded_);
    for (float** rows : {&data_.grad_k, &data_.grad_v}) {
      *rows = (buffer++)->reserve(keys * padded_);
    }
    for (float** rows : {&data_.k_transposed, &data_.v_transposed}) {
      *rows = (buffer++)->reserve(keys * words_);
    }
    for (float** values : {&data_.shift, &data_.one_over_sum, &data_.mean}) {
      *values = (buffer++)->reserve(queries);
    }
    fill_key_lanes(problem, plane_.batch, data_.key_lanes);
  }

  // Tile t of the queries.
  void pack_queries(int64_t t) {
    const KeyRange range = tiles_[static_cast<size_t>(t)];
    const auto q = query_rows(problem_, args_.q, plane_);
    const auto grad_out = query_rows(problem_, args_.grad_out, plane_);
    Products::pack_rows(q, range, data_.q + range.begin * row_words_);
    Products::pack_rows(grad_out, range, data_.grad_out + range.begin * row_words_);
    if constexpr (kWordDepth > 1) {
      Products::pack_queries_down(q, range, down(data_.q_down, t));
      Products::pack_queries_down(grad_out, range, down(data_.grad_out_down, t));
    }
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t at = plane_.runs.row(i);
      const int64_t row = plane_.index * problem_.shape.query_length + at;
      const float sum = args_.softmax.sum[row];
      const bool sees_keys = is_valid_query(problem_, plane_.batch, i) && sum != 0;  // NaN stays
      // 2^(score - infinity) = 0: such a query has no weights and so no gradients.
      data_.shift[i] = sees_keys ? args_.softmax.largest[row] : kInfinity;
      data_.one_over_sum[i] = sees_keys ? 1 / sum : 0;
      data_.mean[i] = sees_keys ? mean_of(at, row) : 0;
    }
  }

  // `range` begins and ends at multiples of 16.
  void pack_keys(KeyRange range) {
    const auto k = key_rows(problem_, args_.k, plane_);
    KeyRange with_spare = range;
    if (range.end >= problem_.shape.key_length) with_spare.end += Products::kSpareRows;
    Products::pack_down(k, with_spare, data_.k_down + range.begin / kWordDepth * padded_);
    Products::pack_transposed(k, range, data_.k_transposed);
    Products::pack_transposed(key_rows(problem_, args_.v, plane_), range, data_.v_transposed);
    for (float* rows : {data_.grad_k, data_.grad_v}) {
      std::fill(rows + range.begin * padded_, rows + range.end * padded_, 0.0f);
    }
  }

  // Adds the contribution of the scores of tile t of the queries with `keys` to the gradients of
  // keys and values, or makes those of the queries, from all keys.
  void add(int64_t t, KeyRange keys, Wanted wanted) {
    const KeyRange all_queries = tiles_[static_cast<size_t>(t)];
    BackwardScratch& scratch = backward_scratch();
    float* grad_q = scratch.grad_q.reserve(round_up(kQueryTile, kLanes) * padded_);
    const int64_t count = all_queries.end - all_queries.begin;
    std::fill_n(grad_q, count * padded_, 0.0f);
    KeyRange queries = trim_queries(problem_, plane_.batch, all_queries);
    if (queries.begin < queries.end) {
      // Whole steps from the beginning of the tile.
      queries.begin -= (queries.begin - all_queries.begin) % Products::kQueryStep;
      float* scores = scratch.scores.reserve(Products::kScoreRows * kScoreStride);
      float* grads = scratch.grad_scores.reserve(Products::kScoreRows * kScoreStride);
      const FinishedTile finished = reserve_finished<Products>(scratch, scores, grads);
      const int64_t first = queries.begin - all_queries.begin;
      Products products;
      collect_tiles(problem_, plane_, queries, keys, data_.key_lanes, scratch.list);
      for (const ScoreTile& tile : scratch.list.tiles) {
        make_tile(products, tile, wanted, scores, grads, finished);
        if (wanted != Wanted::kKeys) {
          add_to_queries(products, tile, finished, grad_q + first * padded_);
        }
        if (wanted != Wanted::kQueries) add_to_keys(products, tile, t, finished);
      }
      // A product may have made more rows than there are queries.
      const int64_t end = queries.end - all_queries.begin;
      std::fill_n(grad_q + end * padded_, (count - end) * padded_, 0.0f);
    }
    if (wanted != Wanted::kKeys) store_queries(all_queries, grad_q);
  }

  void store_keys(KeyRange range) const {
    const KeyRange existing{range.begin, std::min(range.end, problem_.shape.key_length)};
    Products::store_keys(data_.grad_k, existing, dim_, plane_, args_.grad_k);
    Products::store_keys(data_.grad_v, existing, dim_, plane_, args_.grad_v);
  }

 private:
  static constexpr int64_t kWordDepth = Products::kWordDepth;

  // Where operands with depth along the queries have tile t.
  float* down(float* rows, int64_t t) const {
    const int64_t first =
        kWordDepth == 1 ? tiles_[static_cast<size_t>(t)].begin : t * down_rows_ / kWordDepth;
    return rows + first * padded_;
  }

  // Returns the number that the gradients of a row's weights are taken relative to: their weighted
  // mean, grad_out . out, less the gradient of the logsumexp, whose derivative by a score is the
  // weight.
  float mean_of(int64_t query, int64_t row) const {
    const float mean = dot(args_.grad_out.row(plane_.batch, plane_.head, query),
                           args_.out.row(plane_.batch, plane_.head, query), dim_);
    return args_.grad_logsumexp == nullptr ? mean : mean - args_.grad_logsumexp[row];
  }

  void make_tile(Products& products, const ScoreTile& tile, Wanted wanted, float* scores,
                 float* grads, const FinishedTile& finished) const {
    const bool keeps_grads = wanted != Wanted::kKeys && args_.grad_bias.data != nullptr;
    ScoreTile part = tile;
    for (int64_t i = tile.queries.begin; i < tile.queries.end; i += Products::kScoreRows) {
      part.queries = {i, std::min(i + Products::kScoreRows, tile.queries.end)};
      multiply_rows(products, part, scores, grads);
      differentiate(part, {scores, grads, kScoreStride, keeps_grads}, finished,
                    i - tile.queries.begin);
      if (keeps_grads) add_to_bias(part, grads);
    }
    Products::end_tile(finished, tile.queries.end - tile.queries.begin, tile.vectors);
  }

  // Scores, and gradients of weights.
  void multiply_rows(Products& products, const ScoreTile& tile, float* scores, float* grads) const {
    const int64_t first_query = tile.queries.begin * row_words_;
    const int64_t first_key = tile.first_key() * words_;
    const GemmSize size{tile.queries.end - tile.queries.begin, tile.vectors * kLanes, words_};
    const bool biased = args_.bias.data != nullptr;
    if (biased) start_from_bias(problem_, args_.bias, plane_, tile, scores, kScoreStride);
    products.multiply(size,
                      {data_.q + first_query, row_words_, 1, data_.k_transposed + first_key, kLanes,
                       words_ * kLanes, scores, kScoreStride},
                      biased);
    products.multiply(size,
                      {data_.grad_out + first_query, row_words_, 1, data_.v_transposed + first_key,
                       kLanes, words_ * kLanes, grads, kScoreStride},
                      false);
    if (problem_.scale >= 0) return;
    for (int64_t i = 0; i < size.rows; ++i) negate_row(scores + i * kScoreStride, tile.vectors);
  }

  // Rows of `tile`, the first of which is row `first` of the finished tile.
  void differentiate(const ScoreTile& tile, const ScoreRows& rows, const FinishedTile& finished,
                     int64_t first) const {
    const SlopeScales scales(static_cast<float>(problem_.scale),
                             dropout_scale(problem_.dropout_rate));
    uint16_t own_lanes[kWordDepth][kTileVectors], kept[kWordDepth][kTileKeeps];
    for (int64_t i = tile.queries.begin; i < tile.queries.end; i += kWordDepth) {
      RowStep steps[kWordDepth];
      for (int64_t n = 0; n < kWordDepth; ++n) {
        steps[n] = step_of(tile, i + n, own_lanes[n], kept[n]);
      }
      const int64_t row = i - tile.queries.begin;
      const ScoreRows these{rows.scores + row * kScoreStride, rows.grads + row * kScoreStride,
                            i + 1 < tile.queries.end ? rows.second : 0, rows.keeps_grads};
      threshold_ == 0 ? differentiate_rows<false, Products>(steps, scales, tile.vectors, these,
                                                            finished, first + row)
                      : differentiate_rows<true, Products>(steps, scales, tile.vectors, these,
                                                           finished, first + row);
    }
  }

  RowStep step_of(const ScoreTile& tile, int64_t query, uint16_t (&own_lanes)[kTileVectors],
                  uint16_t (&kept)[kTileKeeps]) const {
    static constexpr uint16_t kNoLanes[kTileVectors] = {};
    // A query without weights has no lanes: its zeros times an infinite key would be NaN.
    if (query >= tile.queries.end || data_.one_over_sum[query] == 0) return {kNoLanes, kNoLanes};
    return {lanes_of_query(problem_, plane_, tile, query, own_lanes),
            threshold_ == 0 ? nullptr : tile_keeps(problem_, plane_, tile, query, kept),
            data_.shift[query], data_.one_over_sum[query], data_.mean[query]};
  }

  // The gradients of scale * q . k, of which those of the bias lack the factor.
  void add_to_bias(const ScoreTile& tile, const float* grads) const {
    const Floats factor = broadcast(static_cast<float>(1 / problem_.scale));
    const int64_t keys = problem_.shape.key_length - tile.first_key();
    for (int64_t i = tile.queries.begin; i < tile.queries.end; ++i) {
      float* sums = args_.grad_bias.row(plane_.head, i) + tile.first_key();
      const float* row = grads + (i - tile.queries.begin) * kScoreStride;
      for (int64_t v = 0; v < tile.vectors; ++v) {
        const Lanes lanes = lanes_between(0, keys - v * kLanes);
        const Floats sum = load_lanes(lanes, sums + v * kLanes);
        const Floats grad = load(row + v * kLanes);
        store_lanes(sums + v * kLanes, lanes, multiply_add(grad, factor, sum));
      }
    }
  }

  void add_to_queries(Products& products, const ScoreTile& tile, const FinishedTile& finished,
                      float* grad_q) const {
    products.multiply(
        {tile.queries.end - tile.queries.begin, dim_, tile.vectors * kLanes / kWordDepth},
        {finished.rows, finished.row_stride, 1,
         data_.k_down + tile.first_key() / kWordDepth * padded_, padded_, kLanes, grad_q, padded_},
        true);
  }

  // Here the sum runs over the queries: the tile is read by columns.
  void add_to_keys(Products& products, const ScoreTile& tile, int64_t t,
                   const FinishedTile& finished) const {
    const int64_t before = tile.queries.begin - tiles_[static_cast<size_t>(t)].begin;
    const int64_t first_query = before / kWordDepth * padded_;
    const int64_t first_key = tile.first_key() * padded_;
    const GemmSize size{tile.vectors * kLanes, dim_, tile.queries.end - tile.queries.begin};
    products.add_down(size, finished.weights_down, down(data_.grad_out_down, t) + first_query,
                      data_.grad_v + first_key);
    products.add_down(size, finished.grads_down, down(data_.q_down, t) + first_query,
                      data_.grad_k + first_key);
  }

  void store_queries(KeyRange range, const float* grad_q) const {
    for (int64_t i = range.begin; i < range.end; ++i) {
      unpack_row(grad_q + (i - range.begin) * padded_, dim_, 1,
                 args_.grad_q.row(plane_.batch, plane_.head, plane_.runs.row(i)));
    }
  }

  const AttentionProblem& problem_;
  const AttentionBackward<T>& args_;
  const std::vector<KeyRange>& tiles_;
  const AttentionPlane plane_;
  PlaneData& data_;
  const int64_t dim_, padded_, words_, row_words_, down_rows_;
  const uint32_t threshold_;
};

inline std::vector<KeyRange> key_chunks(const AttentionProblem& problem) {
  std::vector<KeyRange> chunks;
  const int64_t length = round_up(problem.shape.key_length, kLanes);
  for (int64_t j = 0; j < length; j += kKeyTile) {
    chunks.push_back({j, std::min(length, j + kKeyTile)});
  }
  return chunks;
}

template <typename Plane>
void run_whole(Plane& plane, const AttentionProblem& problem, int64_t num_tiles) {
  const KeyRange keys{0, round_up(problem.shape.key_length, kLanes)};
  for (int64_t t = 0; t < num_tiles; ++t) plane.pack_queries(t);
  plane.pack_keys(keys);
  for (int64_t t = 0; t < num_tiles; ++t) plane.add(t, keys, Wanted::kAll);
  plane.store_keys(keys);
}

template <typename Plane>
void run_split(Plane& plane, int64_t num_tiles, const std::vector<KeyRange>& chunks) {
  const auto num_chunks = static_cast<int64_t>(chunks.size());
  // Chunks come first: they are the larger units.
  const auto for_each_unit = [&](const auto& keys, const auto& queries) {
    parallel_for_each(num_chunks + num_tiles, [&](int64_t n) {
      n < num_chunks ? keys(chunks[static_cast<size_t>(n)]) : queries(n - num_chunks);
    });
  };
  for_each_unit([&](const KeyRange& keys) { plane.pack_keys(keys); },
                [&](int64_t t) { plane.pack_queries(t); });
  for_each_unit(
      [&](const KeyRange& keys) {
        for (int64_t t = 0; t < num_tiles; ++t) plane.add(t, keys, Wanted::kKeys);
        plane.store_keys(keys);
      },
      [&](int64_t t) {
        plane.add(t, {0, chunks.back().end}, Wanted::kQueries);
      });
}

inline void clear_bias(const AttentionShape& shape, const ScoreBias<float>& bias) {
  parallel_for_each(shape.heads * shape.query_length, [&](int64_t row) {
    std::fill_n(bias.row(row / shape.query_length, row % shape.query_length), shape.key_length,
                0.0f);
  });
}

template <typename Products, typename T>
void run_backward(const AttentionProblem& problem, const AttentionBackward<T>& args) {
  check_attention_problem(problem);
  const std::vector<KeyRange> tiles = query_tiles(problem);
  const auto num_tiles = static_cast<int64_t>(tiles.size());
  const int64_t planes = problem.shape.batch * problem.shape.heads;
  // Planes of one head add to one bias, in the order of the batch.
  const int64_t in_a_row = args.grad_bias.data == nullptr ? 1 : problem.shape.batch;
  const int64_t rows = planes / in_a_row;
  if (args.grad_bias.data != nullptr) clear_bias(problem.shape, args.grad_bias);
  if (hand_out_whole_planes(rows, num_threads(), 7.0 / 5.0)) {
    parallel_for_each(rows, [&](int64_t row) {
      for (int64_t index = row; index < planes; index += rows) {
        BackwardPlane<T, Products> plane(problem, args, tiles, index);
        run_whole(plane, problem, num_tiles);
      }
    });
    return;
  }
  const std::vector<KeyRange> chunks = key_chunks(problem);
  for (int64_t index = 0; index < planes; ++index) {
    BackwardPlane<T, Products> plane(problem, args, tiles, index);
    run_split(plane, num_tiles, chunks);
  }
}

}  // namespace lra::kernels::LRA_ISA
