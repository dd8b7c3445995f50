// Tiled attention, backward (FlashAttention, algorithm 4): the weights of a tile are recomputed
// from the largest score and the sum of each row, and the five products of a tile are taken while
// it is in cache.
//
// A unit of work is a whole plane, or, when planes are few, a tile of queries (for grad_q) and a
// run of keys (for grad_k and grad_v), at the price of seven products instead of five. Every
// element of a gradient is one chain of multiply-adds in the same order in both, so the bits are
// the same.
#pragma once

#include <cmath>
#include <numbers>

#include "base/parallel.h"
#include "kernels/aligned_buffer.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_pack.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/gemm/gemm.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

// The operands and the gradients of one plane, packed (attention_simd.cpp).
struct PlaneData {
  AlignedBuffer buffers[13];
  float *q, *grad_out;  // [L][padded / kWordDepth]
  // [words][padded]; those of a query tile begin at row tile.begin, so that pairs never span tiles.
  float *q_down, *grad_out_down, *k_down;
  float *k_transposed, *v_transposed;  // [S / 16][words of E][16]
  float *grad_q, *grad_k, *grad_v;     // [L or S][padded]
  float *shift, *one_over_sum, *mean;  // [L]: the largest score; see mean_of
  std::vector<uint16_t> key_lanes;
};

struct BackwardScratch {
  AlignedBuffer weights, grad_scores, grad_rows;
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

// Arguments of the elementwise step for one row of a tile.
struct RowStep {
  const uint16_t* lanes;
  const uint16_t* kept;  // null without dropout
  int64_t vectors;
  float scale, dropout_scale, shift, one_over_sum, mean;
};

// Scores become weights after dropout, gradients of those weights become gradients of q . k.
template <bool kDropout>
void differentiate_row(const RowStep& step, float* scores, float* grads) {
  const Floats log2_scale = broadcast(std::abs(step.scale) * std::numbers::log2e_v<float>);
  const Floats scale = broadcast(step.scale), kept_scale = broadcast(step.dropout_scale);
  const Floats shift = broadcast(step.shift), mean = broadcast(step.mean);
  const Floats one_over_sum = broadcast(step.one_over_sum);
  for (int64_t v = 0; v < step.vectors; ++v) {
    const Floats score = load(scores + v * kLanes);
    Floats grad = load(grads + v * kLanes);
    const Floats weight = keep(step.lanes[v], exp2((score - shift) * log2_scale) * one_over_sum);
    Floats dropped = weight;
    if constexpr (kDropout) {
      dropped = keep(step.kept[v], weight * kept_scale);
      grad = keep(step.kept[v], grad * kept_scale);
    }
    grad = (weight * scale) * (grad - mean);
    store(scores + v * kLanes, dropped);
    store(grads + v * kLanes, grad);
  }
}

template <typename T>
float dot(const T* a, const T* b, int64_t count) {
  Floats sum = zeros();
  for (int64_t e = 0; e < count; e += kLanes) {
    const Lanes lanes = lanes_between(0, count - e);
    sum = multiply_add(load_lanes(lanes, a + e), load_lanes(lanes, b + e), sum);
  }
  return sum_of_lanes(sum);
}

enum class Wanted { kAll, kQueries, kKeys };

template <typename T, typename Products>
class BackwardPlane {
 public:
  BackwardPlane(const AttentionProblem& problem, const AttentionBackward<T>& args, int64_t index)
      : problem_(problem),
        args_(args),
        plane_(plane_of(problem, index)),
        data_(thread_plane()),
        dim_(problem.shape.head_dim),
        padded_(round_up(dim_, kLanes)),
        words_(Products::words(dim_)),
        threshold_(dropout_threshold(problem.dropout_rate)) {
    const int64_t queries = problem.shape.query_length;
    const int64_t keys = round_up(problem.shape.key_length, kLanes);
    AlignedBuffer* buffer = data_.buffers;
    for (float** rows : {&data_.q, &data_.grad_out, &data_.grad_q}) {
      *rows = (buffer++)->reserve(queries * padded_);
    }
    data_.q_down = data_.q;
    data_.grad_out_down = data_.grad_out;
    if constexpr (Products::kWordDepth > 1) {
      for (float** rows : {&data_.q_down, &data_.grad_out_down}) {
        *rows = (buffer++)->reserve(queries * padded_);
      }
    }
    for (float** rows : {&data_.k_down, &data_.grad_k, &data_.grad_v}) {
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

  // `range` is a query tile.
  void pack_queries(KeyRange range) {
    const auto q = query_rows(problem_, args_.q, plane_);
    const auto grad_out = query_rows(problem_, args_.grad_out, plane_);
    Products::pack_rows(q, range, data_.q + range.begin * row_words());
    Products::pack_rows(grad_out, range, data_.grad_out + range.begin * row_words());
    if constexpr (Products::kWordDepth > 1) {
      Products::pack_down(q, range, data_.q_down + range.begin * padded_);
      Products::pack_down(grad_out, range, data_.grad_out_down + range.begin * padded_);
    }
    std::fill(data_.grad_q + range.begin * padded_, data_.grad_q + range.end * padded_, 0.0f);
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
    Products::pack_down(k, range, data_.k_down + Products::words(range.begin) * padded_);
    Products::pack_transposed(k, range, data_.k_transposed);
    Products::pack_transposed(key_rows(problem_, args_.v, plane_), range, data_.v_transposed);
    for (float* rows : {data_.grad_k, data_.grad_v}) {
      std::fill(rows + range.begin * padded_, rows + range.end * padded_, 0.0f);
    }
  }

  // Adds the contribution of the scores of `all_queries`, a query tile, with `keys` to the wanted
  // gradients.
  void add(KeyRange all_queries, KeyRange keys, Wanted wanted) {
    KeyRange queries = trim_queries(problem_, plane_.batch, all_queries);
    if (queries.begin >= queries.end) return;
    // Whole words from the beginning of the tile.
    queries.begin -= (queries.begin - all_queries.begin) % Products::kWordDepth;
    BackwardScratch& scratch = backward_scratch();
    collect_tiles(problem_, plane_, queries, keys, data_.key_lanes, scratch.list);
    float* weights = scratch.weights.reserve(kQueryTile * kScoreStride);
    float* grads = scratch.grad_scores.reserve(kQueryTile * kScoreStride);
    for (const ScoreTile& tile : scratch.list.tiles) {
      make_tile(tile, weights, grads);
      if (wanted != Wanted::kKeys && args_.grad_bias.data != nullptr) add_to_bias(tile, grads);
      const TileOperands finished = Products::finish_tile(
          scratch.grad_rows, weights, grads, queries.end - queries.begin, tile.vectors * kLanes);
      if (wanted != Wanted::kKeys) add_to_queries(tile, finished.rows);
      if (wanted != Wanted::kQueries) add_to_keys(tile, all_queries.begin, finished);
    }
  }

  void store_queries(KeyRange range) const {
    unpack_rows(data_.grad_q, range, dim_, plane_, args_.grad_q);
  }

  void store_keys(KeyRange range) const {
    const KeyRange existing{range.begin, std::min(range.end, problem_.shape.key_length)};
    unpack_rows(data_.grad_k, existing, dim_, plane_, args_.grad_k);
    unpack_rows(data_.grad_v, existing, dim_, plane_, args_.grad_v);
  }

 private:
  int64_t row_words() const { return padded_ / Products::kWordDepth; }

  // Returns the number that the gradients of a row's weights are taken relative to: their weighted
  // mean, grad_out . out, less the gradient of the logsumexp, whose derivative by a score is the
  // weight.
  float mean_of(int64_t query, int64_t row) const {
    const float mean = dot(args_.grad_out.row(plane_.batch, plane_.head, query),
                           args_.out.row(plane_.batch, plane_.head, query), dim_);
    return args_.grad_logsumexp == nullptr ? mean : mean - args_.grad_logsumexp[row];
  }

  void make_tile(const ScoreTile& tile, float* weights, float* grads) const {
    const int64_t first_query = tile.queries.begin * row_words();
    const int64_t first_key = tile.first_key() * words_;
    const GemmSize size{tile.queries.end - tile.queries.begin, tile.vectors * kLanes, words_};
    const bool biased = args_.bias.data != nullptr;
    if (biased) start_from_bias(problem_, args_.bias, plane_, tile, weights, kScoreStride);
    Products::multiply(size,
                       {data_.q + first_query, row_words(), 1, data_.k_transposed + first_key,
                        kLanes, words_ * kLanes, weights, kScoreStride},
                       biased);
    Products::multiply(
        size,
        {data_.grad_out + first_query, row_words(), 1, data_.v_transposed + first_key, kLanes,
         words_ * kLanes, grads, kScoreStride},
        false);
    for (int64_t i = tile.queries.begin; i < tile.queries.end; ++i) {
      const int64_t row = (i - tile.queries.begin) * kScoreStride;
      differentiate(tile, i, weights + row, grads + row);
    }
  }

  void differentiate(const ScoreTile& tile, int64_t query, float* scores, float* grads) const {
    uint16_t own_lanes[kTileVectors];
    RowStep step{lanes_of_query(problem_, plane_, tile, query, own_lanes),
                 nullptr,
                 tile.vectors,
                 static_cast<float>(problem_.scale),
                 dropout_scale(problem_.dropout_rate),
                 data_.shift[query],
                 data_.one_over_sum[query],
                 data_.mean[query]};
    if (problem_.scale < 0) negate_row(scores, tile.vectors);
    if (threshold_ == 0) return differentiate_row<false>(step, scores, grads);
    uint16_t kept[kTileKeeps];
    step.kept = tile_keeps(problem_, plane_, tile, query, kept);
    differentiate_row<true>(step, scores, grads);
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

  void add_to_queries(const ScoreTile& tile, const float* grads) const {
    const int64_t rows = tile.queries.end - tile.queries.begin;
    Products::multiply(
        {rows, dim_, Products::words(tile.vectors * kLanes)},
        {grads, kScoreStride, 1, data_.k_down + Products::words(tile.first_key()) * padded_,
         padded_, kLanes, data_.grad_q + tile.queries.begin * padded_, padded_},
        true);
  }

  // Here rows of the product are keys: the tile is read by columns. `first` is where the query tile
  // begins.
  void add_to_keys(const ScoreTile& tile, int64_t first, const TileOperands& of_tile) const {
    const int64_t first_query = (first + Products::words(tile.queries.begin - first)) * padded_;
    const int64_t first_key = tile.first_key() * padded_;
    const GemmSize size{tile.vectors * kLanes, dim_,
                        Products::words(tile.queries.end - tile.queries.begin)};
    Products::multiply(size,
                       {of_tile.weights_down, 1, kScoreStride, data_.grad_out_down + first_query,
                        padded_, kLanes, data_.grad_v + first_key, padded_},
                       true);
    Products::multiply(size,
                       {of_tile.grads_down, 1, kScoreStride, data_.q_down + first_query, padded_,
                        kLanes, data_.grad_k + first_key, padded_},
                       true);
  }

  const AttentionProblem& problem_;
  const AttentionBackward<T>& args_;
  const AttentionPlane plane_;
  PlaneData& data_;
  const int64_t dim_, padded_, words_;
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
void run_whole(Plane& plane, const AttentionProblem& problem, const std::vector<KeyRange>& tiles) {
  const KeyRange queries{0, problem.shape.query_length};
  const KeyRange keys{0, round_up(problem.shape.key_length, kLanes)};
  for (const KeyRange& tile : tiles) plane.pack_queries(tile);
  plane.pack_keys(keys);
  for (const KeyRange& tile : tiles) plane.add(tile, keys, Wanted::kAll);
  plane.store_queries(queries);
  plane.store_keys(keys);
}

template <typename Plane>
void run_split(Plane& plane, const std::vector<KeyRange>& tiles,
               const std::vector<KeyRange>& chunks) {
  const auto num_chunks = static_cast<int64_t>(chunks.size());
  const auto units = num_chunks + static_cast<int64_t>(tiles.size());
  // Chunks come first: they are the larger units.
  const auto for_each_unit = [&](const auto& keys, const auto& queries) {
    parallel_for_each(units, [&](int64_t n) {
      n < num_chunks ? keys(chunks[static_cast<size_t>(n)])
                     : queries(tiles[static_cast<size_t>(n - num_chunks)]);
    });
  };
  for_each_unit([&](const KeyRange& keys) { plane.pack_keys(keys); },
                [&](const KeyRange& queries) { plane.pack_queries(queries); });
  for_each_unit(
      [&](const KeyRange& keys) {
        for (const KeyRange& tile : tiles) plane.add(tile, keys, Wanted::kKeys);
        plane.store_keys(keys);
      },
      [&](const KeyRange& queries) {
        plane.add(queries, {0, chunks.back().end}, Wanted::kQueries);
        plane.store_queries(queries);
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
  const int64_t planes = problem.shape.batch * problem.shape.heads;
  // Planes of one head add to one bias, in the order of the batch.
  const int64_t in_a_row = args.grad_bias.data == nullptr ? 1 : problem.shape.batch;
  const int64_t rows = planes / in_a_row;
  if (args.grad_bias.data != nullptr) clear_bias(problem.shape, args.grad_bias);
  if (hand_out_whole_planes(rows, num_threads(), 7.0 / 5.0)) {
    parallel_for_each(rows, [&](int64_t row) {
      for (int64_t index = row; index < planes; index += rows) {
        BackwardPlane<T, Products> plane(problem, args, index);
        run_whole(plane, problem, tiles);
      }
    });
    return;
  }
  const std::vector<KeyRange> chunks = key_chunks(problem);
  for (int64_t index = 0; index < planes; ++index) {
    BackwardPlane<T, Products> plane(problem, args, index);
    run_split(plane, tiles, chunks);
  }
}

}  // namespace lra::kernels::LRA_ISA
