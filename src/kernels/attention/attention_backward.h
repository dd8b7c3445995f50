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
  AlignedBuffer buffers[13];
  float *q, *grad_out;                 // [L][row_words]
  float *q_down, *grad_out_down;       // one block for each tile of queries
  float* k_down;                       // [words of S][padded], and kSpareRows
  float *k_transposed, *v_transposed;  // [S / 16][words of E][16]
  float *grad_k, *grad_v;              // sums, as Products::store_keys reads them
  float *shift, *one_over_sum, *mean;  // [L]: the largest score; see mean_of
  // [tiles][S padded + kQueryTile]: for each tile of queries its share of the gradient of a
  // relative bias. Number n is for a key n - (kQueryTile - 1) places after the tile's first query.
  float* bias_sums;
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

// Rows of queries and keys, or of values: numbers, those of a row in memory, and words (Products).
template <typename Products>
struct RowWidth {
  explicit RowWidth(int64_t dim)
      : dim(dim),
        padded(round_up(dim, kLanes)),
        words(Products::words(dim)),
        row_words(Products::row_words(dim)) {}
  const int64_t dim, padded, words, row_words;
};

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
        of_k_(problem.shape.head_dim),
        of_v_(problem.shape.width_of_values()),
        bias_row_(round_up(problem.shape.key_length, kLanes) + kQueryTile),
        down_rows_(round_up(tiles[0].end - tiles[0].begin, Products::kQueryStep)),
        threshold_(dropout_threshold(problem.dropout_rate)) {
    const int64_t queries = problem.shape.query_length;
    const int64_t keys = round_up(problem.shape.key_length, kLanes);
    AlignedBuffer* buffer = data_.buffers;
    const auto reserve = [&](float*& rows, int64_t count) { rows = (buffer++)->reserve(count); };
    reserve(data_.q, (queries + Products::kSpareRows) * of_k_.row_words);
    reserve(data_.grad_out, (queries + Products::kSpareRows) * of_v_.row_words);
    data_.q_down = data_.q;
    data_.grad_out_down = data_.grad_out;
    const auto num_tiles = static_cast<int64_t>(tiles.size());
    if constexpr (kWordDepth > 1) {
      const int64_t pairs = num_tiles * down_rows_ / kWordDepth;
      reserve(data_.q_down, pairs * of_k_.padded);
      reserve(data_.grad_out_down, pairs * of_v_.padded);
    }
    reserve(data_.k_down, (keys + Products::kSpareRows) / kWordDepth * of_k_.padded);
    reserve(data_.grad_k, keys * of_k_.padded);
    reserve(data_.grad_v, keys * of_v_.padded);
    reserve(data_.k_transposed, keys * of_k_.words);
    reserve(data_.v_transposed, keys * of_v_.words);
    for (float** values : {&data_.shift, &data_.one_over_sum, &data_.mean}) {
      reserve(*values, queries);
    }
    if (args.grad_bias.is_relative()) reserve(data_.bias_sums, num_tiles * bias_row_);
    fill_key_lanes(problem, plane_.batch, data_.key_lanes);
  }

  // Tile t of the queries.
  void pack_queries(int64_t t) {
    const KeyRange range = tiles_[static_cast<size_t>(t)];
    const auto q = query_rows(problem_, args_.q, plane_, of_k_.dim);
    const auto grad_out = query_rows(problem_, args_.grad_out, plane_, of_v_.dim);
    Products::pack_rows(q, range, data_.q + range.begin * of_k_.row_words);
    Products::pack_rows(grad_out, range, data_.grad_out + range.begin * of_v_.row_words);
    if constexpr (kWordDepth > 1) {
      Products::pack_queries_down(q, range, down(data_.q_down, of_k_, t));
      Products::pack_queries_down(grad_out, range, down(data_.grad_out_down, of_v_, t));
    }
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t at = plane_.runs.row(i);
      const int64_t row = plane_.index * problem_.shape.query_length + at;
      const float sum = args_.softmax.sum[row];
      const bool sees_keys = is_valid_query(problem_, plane_.batch, i) && sum != 0;  // NaN stays
      // 2^(score - infinity) = 0: such a query has no weights and so no gradients.
      data_.shift[i] = sees_keys ? args_.softmax.largest[row] : kInfinity;
      data_.one_over_sum[i] = sees_keys ? 1 / sum : 0;
      data_.mean[i] = sees_keys && is_softmax() ? mean_of(at, row) : 0;
    }
  }

  // `range` begins and ends at multiples of 16.
  void pack_keys(KeyRange range) {
    const auto k = key_rows(problem_, args_.k, plane_, of_k_.dim);
    KeyRange with_spare = range;
    if (range.end >= problem_.shape.key_length) with_spare.end += Products::kSpareRows;
    Products::pack_down(k, with_spare, data_.k_down + range.begin / kWordDepth * of_k_.padded);
    Products::pack_transposed(k, range, data_.k_transposed);
    Products::pack_transposed(key_rows(problem_, args_.v, plane_, of_v_.dim), range,
                              data_.v_transposed);
    const auto clear = [&](float* rows, int64_t padded) {
      std::fill(rows + range.begin * padded, rows + range.end * padded, 0.0f);
    };
    clear(data_.grad_k, of_k_.padded);
    clear(data_.grad_v, of_v_.padded);
  }

  // Adds the contribution of the scores of tile t of the queries with `keys` to the gradients of
  // keys and values, or makes those of the queries, from all keys.
  void add(int64_t t, KeyRange keys, Wanted wanted) {
    const KeyRange all_queries = tiles_[static_cast<size_t>(t)];
    BackwardScratch& scratch = backward_scratch();
    float* grad_q = scratch.grad_q.reserve(round_up(kQueryTile, kLanes) * of_k_.padded);
    const int64_t count = all_queries.end - all_queries.begin;
    std::fill_n(grad_q, count * of_k_.padded, 0.0f);
    if (wanted != Wanted::kKeys && args_.grad_bias.is_relative()) {
      std::fill_n(data_.bias_sums + t * bias_row_, bias_row_, 0.0f);
    }
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
        make_tile(products, tile, t, wanted, scores, grads, finished);
        if (wanted != Wanted::kKeys) {
          add_to_queries(products, tile, finished, grad_q + first * of_k_.padded);
        }
        if (wanted != Wanted::kQueries) add_to_keys(products, tile, t, finished);
      }
      // A product may have made more rows than there are queries.
      const int64_t end = queries.end - all_queries.begin;
      std::fill_n(grad_q + end * of_k_.padded, (count - end) * of_k_.padded, 0.0f);
    }
    if (wanted != Wanted::kKeys) store_queries(all_queries, grad_q);
  }

  void store_keys(KeyRange range) const {
    const KeyRange existing{range.begin, std::min(range.end, problem_.shape.key_length)};
    Products::store_keys(data_.grad_k, existing, of_k_.dim, plane_, args_.grad_k);
    Products::store_keys(data_.grad_v, existing, of_v_.dim, plane_, args_.grad_v);
  }

  // Adds the tiles' shares of the gradient of a relative bias to `sums` [L + S - 1], in their
  // order.
  void sum_bias(float* sums) const {
    const AttentionShape& shape = problem_.shape;
    for (size_t t = 0; t < tiles_.size(); ++t) {
      const float* from = data_.bias_sums + static_cast<int64_t>(t) * bias_row_;
      const int64_t first = kQueryTile - (tiles_[t].end - tiles_[t].begin);
      float* to = sums + shape.query_length - kQueryTile - tiles_[t].begin;
      for (int64_t n = first; n < kQueryTile - 1 + shape.key_length; ++n) to[n] += from[n];
    }
  }

 private:
  static constexpr int64_t kWordDepth = Products::kWordDepth;

  bool is_softmax() const { return problem_.weights == AttentionWeights::kSoftmax; }

  // Where operands with depth along the queries have tile t.
  float* down(float* rows, const RowWidth<Products>& width, int64_t t) const {
    const int64_t first =
        kWordDepth == 1 ? tiles_[static_cast<size_t>(t)].begin : t * down_rows_ / kWordDepth;
    return rows + first * width.padded;
  }

  // Returns the number that the gradients of a row's weights are taken relative to: their weighted
  // mean, grad_out . out, less the gradient of the logsumexp, whose derivative by a score is the
  // weight.
  float mean_of(int64_t query, int64_t row) const {
    const float mean = dot(args_.grad_out.row(plane_.batch, plane_.head, query),
                           args_.out.row(plane_.batch, plane_.head, query), of_v_.dim);
    return args_.grad_logsumexp == nullptr ? mean : mean - args_.grad_logsumexp[row];
  }

  void make_tile(Products& products, const ScoreTile& tile, int64_t t, Wanted wanted, float* scores,
                 float* grads, const FinishedTile& finished) const {
    const bool keeps_grads = wanted != Wanted::kKeys && args_.grad_bias.data != nullptr;
    ScoreTile part = tile;
    for (int64_t i = tile.queries.begin; i < tile.queries.end; i += Products::kScoreRows) {
      part.queries = {i, std::min(i + Products::kScoreRows, tile.queries.end)};
      multiply_rows(products, part, scores, grads);
      differentiate(part, {scores, grads, kScoreStride, keeps_grads}, finished,
                    i - tile.queries.begin);
      if (keeps_grads) add_to_bias(part, t, grads);
    }
    Products::end_tile(finished, tile.queries.end - tile.queries.begin, tile.vectors);
  }

  // Scores, and gradients of weights.
  void multiply_rows(Products& products, const ScoreTile& tile, float* scores, float* grads) const {
    const auto multiply = [&](const RowWidth<Products>& width, const float* queries,
                              const float* keys, float* to, bool accumulate) {
      products.multiply(
          {tile.queries.end - tile.queries.begin, tile.vectors * kLanes, width.words},
          {queries + tile.queries.begin * width.row_words, width.row_words, 1,
           keys + tile.first_key() * width.words, kLanes, width.words * kLanes, to, kScoreStride},
          accumulate);
    };
    const bool biased = args_.bias.data != nullptr;
    if (biased) start_from_bias(problem_, args_.bias, plane_, tile, scores, kScoreStride);
    multiply(of_k_, data_.q, data_.k_transposed, scores, biased);
    multiply(of_v_, data_.grad_out, data_.v_transposed, grads, false);
    if (problem_.scale >= 0) return;
    for (int64_t i = tile.queries.begin; i < tile.queries.end; ++i) {
      negate_row(scores + (i - tile.queries.begin) * kScoreStride, tile.vectors);
    }
  }

  // Rows of `tile`, the first of which is row `first` of the finished tile.
  void differentiate(const ScoreTile& tile, const ScoreRows& rows, const FinishedTile& finished,
                     int64_t first) const {
    const SlopeScales scales(static_cast<float>(problem_.scale),
                             dropout_scale(problem_.dropout_rate));
    constexpr auto kSoftmax = AttentionWeights::kSoftmax, kLaplace = AttentionWeights::kLaplace;
    const auto differentiate_some =
        threshold_ == 0 ? (is_softmax() ? differentiate_rows<false, kSoftmax, Products>
                                        : differentiate_rows<false, kLaplace, Products>)
                        : (is_softmax() ? differentiate_rows<true, kSoftmax, Products>
                                        : differentiate_rows<true, kLaplace, Products>);
    uint16_t own_lanes[kWordDepth][kTileVectors], kept[kWordDepth][kTileKeeps];
    for (int64_t i = tile.queries.begin; i < tile.queries.end; i += kWordDepth) {
      RowStep steps[kWordDepth];
      for (int64_t n = 0; n < kWordDepth; ++n) {
        steps[n] = step_of(tile, i + n, own_lanes[n], kept[n]);
      }
      const int64_t row = i - tile.queries.begin;
      const ScoreRows these{rows.scores + row * kScoreStride, rows.grads + row * kScoreStride,
                            i + 1 < tile.queries.end ? rows.second : 0, rows.keeps_grads};
      differentiate_some(steps, scales, tile.vectors, these, finished, first + row);
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
  void add_to_bias(const ScoreTile& tile, int64_t t, const float* grads) const {
    const Floats factor = broadcast(static_cast<float>(1 / problem_.scale));
    const int64_t keys =
        std::min(tile.vectors * kLanes, problem_.shape.key_length - tile.first_key());
    float* const shares = data_.bias_sums + t * bias_row_ + kQueryTile - 1;
    for (int64_t i = tile.queries.begin; i < tile.queries.end; ++i) {
      float* const sums = args_.grad_bias.is_relative()
                              ? shares - (i - tiles_[static_cast<size_t>(t)].begin)
                              : args_.grad_bias.row(plane_.head, i);
      const float* row = grads + (i - tile.queries.begin) * kScoreStride;
      for_each_run(keys, [&](int64_t n, auto lanes) {
        float* const to = sums + tile.first_key() + n;
        store_lanes(to, lanes, multiply_add(load(row + n), factor, load_lanes(lanes, to)));
      });
    }
  }

  void add_to_queries(Products& products, const ScoreTile& tile, const FinishedTile& finished,
                      float* grad_q) const {
    products.multiply(
        {tile.queries.end - tile.queries.begin, of_k_.dim, tile.vectors * kLanes / kWordDepth},
        {finished.rows, finished.row_stride, 1,
         data_.k_down + tile.first_key() / kWordDepth * of_k_.padded, of_k_.padded, kLanes, grad_q,
         of_k_.padded},
        true);
  }

  // Here the sum runs over the queries: the tile is read by columns.
  void add_to_keys(Products& products, const ScoreTile& tile, int64_t t,
                   const FinishedTile& finished) const {
    const int64_t before = tile.queries.begin - tiles_[static_cast<size_t>(t)].begin;
    const auto add = [&](const RowWidth<Products>& width, const float* scores, float* queries,
                         float* sums) {
      products.add_down({tile.vectors * kLanes, width.dim, tile.queries.end - tile.queries.begin},
                        scores, down(queries, width, t) + before / kWordDepth * width.padded,
                        sums + tile.first_key() * width.padded);
    };
    add(of_v_, finished.weights_down, data_.grad_out_down, data_.grad_v);
    add(of_k_, finished.grads_down, data_.q_down, data_.grad_k);
  }

  void store_queries(KeyRange range, const float* grad_q) const {
    for (int64_t i = range.begin; i < range.end; ++i) {
      unpack_row(grad_q + (i - range.begin) * of_k_.padded, of_k_.dim, 1,
                 args_.grad_q.row(plane_.batch, plane_.head, plane_.runs.row(i)));
    }
  }

  const AttentionProblem& problem_;
  const AttentionBackward<T>& args_;
  const std::vector<KeyRange>& tiles_;
  const AttentionPlane plane_;
  PlaneData& data_;
  const RowWidth<Products> of_k_, of_v_;
  const int64_t bias_row_, down_rows_;
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

// `bias` is a table.
inline void clear_bias(const AttentionShape& shape, const ScoreBias<float>& bias) {
  parallel_for_each(shape.heads * shape.query_length, [&](int64_t row) {
    std::fill_n(bias.row(row / shape.query_length, row % shape.query_length), shape.key_length,
                0.0f);
  });
}

// Writes the gradient of a relative bias: the sum of those of planes, [B, H, L + S - 1], over the
// batch.
inline void sum_planes(const AttentionShape& shape, const std::vector<float>& planes,
                       const ScoreBias<float>& bias) {
  const int64_t distances = shape.query_length + shape.key_length - 1;
  for (int64_t head = 0; head < shape.heads; ++head) {
    float* const to = bias.row(head, shape.query_length - 1);
    std::fill_n(to, distances, 0.0f);
    for (int64_t b = 0; b < shape.batch; ++b) {
      const float* from = planes.data() + (b * shape.heads + head) * distances;
      for (int64_t n = 0; n < distances; ++n) to[n] += from[n];
    }
  }
}

template <typename Products, typename T>
void run_backward(const AttentionProblem& problem, const AttentionBackward<T>& args) {
  check_attention_problem(problem);
  const std::vector<KeyRange> tiles = query_tiles(problem);
  const auto num_tiles = static_cast<int64_t>(tiles.size());
  const int64_t planes = problem.shape.batch * problem.shape.heads;
  const bool is_relative = args.grad_bias.is_relative();
  const int64_t distances = problem.shape.query_length + problem.shape.key_length - 1;
  std::vector<float> bias_sums(is_relative ? static_cast<size_t>(planes * distances) : 0);
  const auto sum_bias = [&](const auto& plane, int64_t index) {
    if (is_relative) plane.sum_bias(bias_sums.data() + index * distances);
  };
  // Planes of one head add to one table, in the order of the batch.
  const bool is_table = args.grad_bias.data != nullptr && !is_relative;
  const int64_t rows = is_table ? problem.shape.heads : planes;
  if (is_table) clear_bias(problem.shape, args.grad_bias);
  if (hand_out_whole_planes(rows, num_threads(), 7.0 / 5.0)) {
    parallel_for_each(rows, [&](int64_t row) {
      for (int64_t index = row; index < planes; index += rows) {
        BackwardPlane<T, Products> plane(problem, args, tiles, index);
        run_whole(plane, problem, num_tiles);
        sum_bias(plane, index);
      }
    });
  } else {
    const std::vector<KeyRange> chunks = key_chunks(problem);
    for (int64_t index = 0; index < planes; ++index) {
      BackwardPlane<T, Products> plane(problem, args, tiles, index);
      run_split(plane, num_tiles, chunks);
      sum_bias(plane, index);
    }
  }
  if (is_relative) sum_planes(problem.shape, bias_sums, args.grad_bias);
}

}  // namespace lra::kernels::LRA_ISA
