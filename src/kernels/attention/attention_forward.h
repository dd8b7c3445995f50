// Tiled attention, forward: for each tile of queries the softmax runs over tiles of keys with a
// running maximum and sum (FlashAttention, algorithm 1). Scores are products q . k, with the bias
// divided by the scale; the scale, in units of log2, meets their difference from the largest.
#pragma once

#include <cmath>
#include <numbers>

#include "base/parallel.h"
#include "kernels/aligned_buffer.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_laplace.h"
#include "kernels/attention/attention_pack.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/gemm/gemm.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

// Keys and values of one plane, as the products take them (attention_simd.cpp).
struct PackedKeys {
  AlignedBuffer transposed_buffer, values_buffer;
  float* transposed = nullptr;  // [S / 16][words of E][16]
  float* values = nullptr;      // [words of S][value_dim padded], and kSpareRows
  std::vector<uint16_t> lanes;
};

struct ForwardScratch {
  AlignedBuffer queries, scores, sums;
  TileList list;
  float row_max[kQueryTile];
  float row_sum[kQueryTile];
};

// Buffers that a thread keeps from call to call.
inline PackedKeys& thread_keys() {
  thread_local PackedKeys keys;
  return keys;
}
inline ForwardScratch& forward_scratch() {
  thread_local ForwardScratch scratch;
  return scratch;
}

template <typename Products>
int64_t packed_keys(const AttentionProblem& problem) {
  return round_up(problem.shape.key_length, kLanes) + Products::kSpareRows;
}

template <typename Products>
void reserve_keys(const AttentionProblem& problem, const AttentionPlane& plane, PackedKeys& keys) {
  const int64_t rows = packed_keys<Products>(problem);
  const int64_t padded = round_up(problem.shape.width_of_values(), kLanes);
  keys.transposed = keys.transposed_buffer.reserve(rows * Products::words(problem.shape.head_dim));
  keys.values = keys.values_buffer.reserve(rows / Products::kWordDepth * padded);
  fill_key_lanes(problem, plane.batch, keys.lanes);
}

template <typename Products, typename T>
void pack_keys(const AttentionProblem& problem, const AttentionForward<T>& args,
               const AttentionPlane& plane, KeyRange range, PackedKeys& keys) {
  const int64_t width = problem.shape.width_of_values(), padded = round_up(width, kLanes);
  Products::pack_transposed(key_rows(problem, args.k, plane, problem.shape.head_dim), range,
                            keys.transposed);
  Products::pack_down(key_rows(problem, args.v, plane, width), range,
                      keys.values + range.begin / Products::kWordDepth * padded);
}

// The running softmax of one row, and the factor for its sums so far.
struct RunningRow {
  float& max;
  float& sum;
  float* sums;
  int64_t sum_vectors;
};

// Four chains, which a row of sixteen vectors is too short to make up for the wait of one.
inline Floats max_of_row(const float* scores, const uint16_t* lanes, int64_t vectors) {
  constexpr int64_t kChains = 4;
  Floats most[kChains];
  for (Floats& chain : most) chain = broadcast(-kInfinity);
  const auto add = [&](int64_t v, Floats& chain) {
    chain = select(lanes[v], max(chain, load(scores + v * kLanes)), chain);
  };
  int64_t v = 0;
  for (; v + kChains <= vectors; v += kChains) {
    for (int64_t n = 0; n < kChains; ++n) add(v + n, most[n]);
  }
  for (; v < vectors; ++v) add(v, most[0]);
  return max(max(most[0], most[1]), max(most[2], most[3]));
}

// Replaces scores by weights 2^((score - max) scale), dropped ones by 0, as operands of the product
// with the values. If max is -infinity, hidden lanes still become 0, and visible ones NaN.
template <bool kDropout, typename Products>
void softmax_row(float* scores, const uint16_t* lanes, const uint16_t* kept, int64_t vectors,
                 float scale, RunningRow row) {
  const Floats scales = broadcast(scale);
  const float max = std::max(row.max, max_of_lanes(max_of_row(scores, lanes, vectors)));
  const Floats shift = broadcast(max);
  Floats sum = zeros();
  for (int64_t v = 0; v < vectors; ++v) {
    const Floats score = load(scores + v * kLanes);
    Floats weight = keep(lanes[v], exp2((score - shift) * scales));
    sum = sum + weight;
    if constexpr (kDropout) weight = keep(kept[v], weight);
    Products::store_weight(scores, v, weight);
  }
  Products::end_weights(scores, vectors);
  if (max != row.max) {
    const float factor = std::exp2((row.max - max) * scale);  // 0 for the first tile
    row.sum *= factor;
    for (int64_t v = 0; v < row.sum_vectors; ++v) {
      float* sums = row.sums + v * kLanes;
      store(sums, load(sums) * broadcast(factor));
    }
    row.max = max;
  }
  row.sum += sum_of_lanes(sum);
}

// Replaces scores, divided by `scale`, by weights that need no others of their row.
template <bool kDropout, typename Products>
void laplace_row(float* scores, const uint16_t* lanes, const uint16_t* kept, int64_t vectors,
                 float scale, RunningRow row) {
  const LaplaceWeights laplace(scale);
  for (int64_t v = 0; v < vectors; ++v) {
    Floats weight = keep(lanes[v], laplace.weight(load(scores + v * kLanes)));
    if constexpr (kDropout) weight = keep(kept[v], weight);
    Products::store_weight(scores, v, weight);
    if (lanes[v] != 0) row.max = 0, row.sum = 1;
  }
  Products::end_weights(scores, vectors);
}

template <typename T, typename Products>
class ForwardTile {
 public:
  ForwardTile(const AttentionProblem& problem, const AttentionForward<T>& args,
              const AttentionPlane& plane, const PackedKeys& keys)
      : problem_(problem),
        args_(args),
        plane_(plane),
        keys_(keys),
        scratch_(forward_scratch()),
        dim_(problem.shape.width_of_values()),
        padded_(round_up(dim_, kLanes)),
        words_(Products::words(problem.shape.head_dim)),
        row_words_(Products::row_words(problem.shape.head_dim)),
        threshold_(dropout_threshold(problem.dropout_rate)) {}

  void run(KeyRange all_queries) {
    const KeyRange queries = trim_queries(problem_, plane_.batch, all_queries);
    if (queries.begin < queries.end) {
      start(queries);
      collect_tiles(problem_, plane_, queries, {0, problem_.shape.key_length}, keys_.lanes,
                    scratch_.list);
      for (const ScoreTile& tile : scratch_.list.tiles) add(tile);
    }
    for (int64_t i = all_queries.begin; i < all_queries.end; ++i) finish_row(i, queries);
  }

 private:
  void start(KeyRange queries) {
    const int64_t rows = queries.end - queries.begin;
    queries_ = scratch_.queries.reserve(kQueryTile * row_words_);
    scores_ = scratch_.scores.reserve(Products::kForwardRows * kScoreStride);
    sums_ = scratch_.sums.reserve(kQueryTile * padded_);
    Products::pack_rows(query_rows(problem_, args_.q, plane_, problem_.shape.head_dim), queries,
                        queries_);
    std::fill(sums_, sums_ + rows * padded_, 0.0f);
    std::fill(scratch_.row_max, scratch_.row_max + rows, -kInfinity);
    std::fill(scratch_.row_sum, scratch_.row_sum + rows, 0.0f);
  }

  void add(const ScoreTile& tile) {
    ScoreTile part = tile;
    for (int64_t i = tile.queries.begin; i < tile.queries.end; i += Products::kForwardRows) {
      part.queries = {i, std::min(i + Products::kForwardRows, tile.queries.end)};
      add_rows(part, i - tile.queries.begin);
    }
  }

  // `first` is where the rows begin in the tile of queries.
  void add_rows(const ScoreTile& tile, int64_t first) {
    const int64_t rows = tile.queries.end - tile.queries.begin;
    const int64_t keys = tile.vectors * kLanes;
    const bool biased = args_.bias.data != nullptr;
    if (biased) start_from_bias(problem_, args_.bias, plane_, tile, scores_, kScoreStride);
    products_.multiply(
        {rows, keys, words_},
        {queries_ + first * row_words_, row_words_, 1, keys_.transposed + tile.first_key() * words_,
         kLanes, words_ * kLanes, scores_, kScoreStride},
        biased);
    for (int64_t i = 0; i < rows; ++i) weigh_row(tile, i, first + i);
    constexpr int64_t kWordDepth = Products::kWordDepth;
    products_.multiply(
        {rows, dim_, keys / kWordDepth},
        {scores_, kScoreStride, 1, keys_.values + tile.first_key() / kWordDepth * padded_, padded_,
         kLanes, sums_ + first * padded_, padded_},
        true);
  }

  // Row i of the tile, `row` of the tile of queries.
  void weigh_row(const ScoreTile& tile, int64_t i, int64_t row) {
    const int64_t query = tile.queries.begin + i;
    uint16_t own_lanes[kTileVectors];
    const uint16_t* lanes = lanes_of_query(problem_, plane_, tile, query, own_lanes);
    const RunningRow running{scratch_.row_max[row], scratch_.row_sum[row], sums_ + row * padded_,
                             padded_ / kLanes};
    float* scores = scores_ + i * kScoreStride;
    uint16_t space[kTileKeeps];
    const uint16_t* kept =
        threshold_ == 0 ? nullptr : tile_keeps(problem_, plane_, tile, query, space);
    if (problem_.weights == AttentionWeights::kLaplace) {
      const auto row_function =
          kept == nullptr ? laplace_row<false, Products> : laplace_row<true, Products>;
      row_function(scores, lanes, kept, tile.vectors, static_cast<float>(problem_.scale), running);
      return;
    }
    if (problem_.scale < 0) negate_row(scores, tile.vectors);
    const auto scale = static_cast<float>(std::abs(problem_.scale) * std::numbers::log2e);
    const auto row_function =
        kept == nullptr ? softmax_row<false, Products> : softmax_row<true, Products>;
    row_function(scores, lanes, kept, tile.vectors, scale, running);
  }

  void finish_row(int64_t query, KeyRange computed) {
    const int64_t row = query - computed.begin;
    const bool sees_keys = query >= computed.begin && query < computed.end &&
                           is_valid_query(problem_, plane_.batch, query) &&
                           scratch_.row_sum[row] != 0;  // NaN stays
    const int64_t to = plane_.runs.row(query);
    T* out = args_.out.row(plane_.batch, plane_.head, to);
    const int64_t at = plane_.index * problem_.shape.query_length + to;
    const float sum = sees_keys ? scratch_.row_sum[row] : 0;
    args_.softmax.largest[at] = sees_keys ? scratch_.row_max[row] : -kInfinity;
    args_.softmax.sum[at] = sum;
    if (sees_keys) {
      unpack_row(sums_ + row * padded_, dim_, dropout_scale(problem_.dropout_rate) / sum, out);
    } else {
      std::fill(out, out + dim_, T{0.0f});
    }
  }

  const AttentionProblem& problem_;
  const AttentionForward<T>& args_;
  const AttentionPlane& plane_;
  const PackedKeys& keys_;
  ForwardScratch& scratch_;
  Products products_;
  const int64_t dim_, padded_;       // of values
  const int64_t words_, row_words_;  // of queries and keys
  const uint32_t threshold_;
  float* queries_ = nullptr;
  float* scores_ = nullptr;
  float* sums_ = nullptr;
};

template <typename Products, typename T>
void run_forward(const AttentionProblem& problem, const AttentionForward<T>& args) {
  check_attention_problem(problem);
  const std::vector<KeyRange> tiles = query_tiles(problem);
  const int64_t planes = problem.shape.batch * problem.shape.heads;
  const int64_t num_vectors = packed_keys<Products>(problem) / kLanes;
  const auto run_plane = [&](int64_t index) {
    const AttentionPlane plane = plane_of(problem, index);
    PackedKeys& keys = thread_keys();
    reserve_keys<Products>(problem, plane, keys);
    constexpr int64_t kVectorsAtOnce = 16;
    parallel_ranges(num_vectors, kVectorsAtOnce, [&](int64_t begin, int64_t end) {
      pack_keys<Products>(problem, args, plane, {begin * kLanes, end * kLanes}, keys);
    });
    parallel_for_each(static_cast<int64_t>(tiles.size()), [&](int64_t t) {
      ForwardTile<T, Products>(problem, args, plane, keys).run(tiles[static_cast<size_t>(t)]);
    });
  };
  if (hand_out_whole_planes(planes, num_threads(), 1.0)) {
    // Loops inside a plane run on the thread that has the plane.
    parallel_for_each(planes, run_plane);
  } else {
    for (int64_t index = 0; index < planes; ++index) run_plane(index);
  }
}

}  // namespace lra::kernels::LRA_ISA
