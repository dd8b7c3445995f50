// Tiled attention, forward: for each tile of queries the softmax runs over tiles of keys with a
// running maximum and sum (FlashAttention, algorithm 1). Scores are kept in units of log2, so that
// the exponential is a bare 2^x.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/parallel.h"
#include "kernels/aligned_buffer.h"
#include "kernels/attention.h"
#include "kernels/attention_pack.h"
#include "kernels/attention_tiles.h"
#include "kernels/gemm.h"
#include "kernels/pairs.h"
#include "kernels/simd.h"

namespace lra::kernels::avx512 {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Sixteen floats more than the tile is wide, lest all rows of a column share a set of the cache.
constexpr int64_t kScoreStride = kKeyTile + kLanes;

// Keys and values of one plane, as the products take them (attention_pack.h).
struct PackedKeys {
  AlignedBuffer transposed_buffer, values_buffer;
  float* transposed = nullptr;  // [S / 16][words of E][16]
  float* values = nullptr;      // [words of S][E padded]
  std::vector<uint16_t> lanes;
};

struct TileScratch {
  AlignedBuffer queries, scores, sums;
  TileList list;
  float row_max[kQueryTile];  // of scores * log2(e)
  float row_sum[kQueryTile];
};

// What a thread keeps from call to call.
PackedKeys& thread_keys() {
  thread_local PackedKeys keys;
  return keys;
}
TileScratch& thread_tiles() {
  thread_local TileScratch scratch;
  return scratch;
}

void reserve_keys(const AttentionProblem& problem, const AttentionPlane& plane, PackedKeys& keys) {
  const int64_t rows = round_up(problem.shape.key_length, kLanes);
  keys.transposed = keys.transposed_buffer.reserve(rows * problem.shape.head_dim);
  keys.values = keys.values_buffer.reserve(rows * round_up(problem.shape.head_dim, kLanes));
  fill_key_lanes(problem, plane.batch, keys.lanes);
}

template <typename Products, typename T>
void pack_keys(const AttentionProblem& problem, const AttentionForward<T>& args,
               const AttentionPlane& plane, KeyRange range, PackedKeys& keys) {
  Products::pack_transposed(key_rows(problem, args.k, plane), range, keys.transposed);
  const int64_t padded = round_up(problem.shape.head_dim, kLanes);
  Products::pack_down(key_rows(problem, args.v, plane), range,
                      keys.values + Products::words(range.begin) * padded);
}

// A row of weights becomes the left operand of the product with the values.
void finish_weights(FloatProducts, float*, int64_t) {}
void finish_weights(PairProducts, float* row, int64_t count) {
  avx512_bf16::narrow_row(row, count, row);
}

void multiply(FloatProducts, const GemmSize& size, const GemmOperands& o, bool accumulate) {
  avx512::gemm(size, o, accumulate);
}
void multiply(PairProducts, const GemmSize& size, const GemmOperands& o, bool accumulate) {
  avx512_bf16::gemm_pairs(size, o, accumulate);
}

// The running softmax of one row, and what becomes of the sums it has gathered so far.
struct RunningRow {
  float& max;
  float& sum;
  float* sums;
  int64_t sum_vectors;
};

__m512 max_of_row(const float* scores, const uint16_t* lanes, int64_t vectors, __m512 scale) {
  __m512 most = _mm512_set1_ps(-kInfinity);
  for (int64_t v = 0; v < vectors; ++v) {
    const __m512 score = _mm512_mul_ps(_mm512_loadu_ps(scores + v * kLanes), scale);
    most = _mm512_mask_max_ps(most, lanes[v], most, score);
  }
  return most;
}

// Replaces scores by weights 2^(score * scale - max), dropped ones by 0.
template <bool kDropout>
void softmax_row(float* scores, const uint16_t* lanes, const uint16_t* kept, int64_t vectors,
                 float scale, RunningRow row) {
  const __m512 scales = _mm512_set1_ps(scale);
  const float max =
      std::max(row.max, _mm512_reduce_max_ps(max_of_row(scores, lanes, vectors, scales)));
  const bool sees_none = max == -kInfinity;  // then every lane is hidden and any shift will do
  const __m512 shift = _mm512_set1_ps(sees_none ? 0 : max);
  __m512 sum = _mm512_setzero_ps();
  for (int64_t v = 0; v < vectors; ++v) {
    const __m512 score = _mm512_loadu_ps(scores + v * kLanes);
    __m512 weight = _mm512_maskz_mov_ps(lanes[v], exp2_ps(_mm512_fmsub_ps(score, scales, shift)));
    sum = _mm512_add_ps(sum, weight);
    if constexpr (kDropout) weight = _mm512_maskz_mov_ps(kept[v], weight);
    _mm512_storeu_ps(scores + v * kLanes, weight);
  }
  if (max != row.max) {
    const float factor = std::exp2(row.max - max);  // 0 for the first tile
    row.sum *= factor;
    for (int64_t v = 0; v < row.sum_vectors; ++v) {
      float* sums = row.sums + v * kLanes;
      _mm512_storeu_ps(sums, _mm512_mul_ps(_mm512_loadu_ps(sums), _mm512_set1_ps(factor)));
    }
    row.max = max;
  }
  row.sum += _mm512_reduce_add_ps(sum);
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
        scratch_(thread_tiles()),
        dim_(problem.shape.head_dim),
        padded_(round_up(dim_, kLanes)),
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
    queries_ = scratch_.queries.reserve(kQueryTile * padded_);
    scores_ = scratch_.scores.reserve(kQueryTile * kScoreStride);
    sums_ = scratch_.sums.reserve(kQueryTile * padded_);
    Products::pack_rows(query_rows(problem_, args_.q, plane_), queries, queries_);
    std::fill(sums_, sums_ + rows * padded_, 0.0f);
    std::fill(scratch_.row_max, scratch_.row_max + rows, -kInfinity);
    std::fill(scratch_.row_sum, scratch_.row_sum + rows, 0.0f);
  }

  void add(const ScoreTile& tile) {
    const int64_t rows = tile.queries.end - tile.queries.begin;
    const int64_t words = Products::words(dim_), keys = tile.vectors * kLanes;
    const bool biased = args_.bias.data != nullptr;
    if (biased) start_from_bias(problem_, args_.bias, plane_, tile, scores_, kScoreStride);
    multiply(
        Products(), {rows, keys, words},
        {queries_, padded_ / Products::kWordDepth, 1, keys_.transposed + tile.first_key() * words,
         kLanes, words * kLanes, scores_, kScoreStride},
        biased);
    for (int64_t i = tile.queries.begin; i < tile.queries.end; ++i) {
      weigh_row(tile, i);
      finish_weights(Products(), scores_ + (i - tile.queries.begin) * kScoreStride, keys);
    }
    multiply(Products(), {rows, dim_, Products::words(keys)},
             {scores_, kScoreStride, 1, keys_.values + Products::words(tile.first_key()) * padded_,
              padded_, kLanes, sums_, padded_},
             true);
  }

  void weigh_row(const ScoreTile& tile, int64_t query) {
    const int64_t row = query - tile.queries.begin;
    uint16_t own_lanes[kTileVectors];
    const uint16_t* lanes = lanes_of_query(problem_, plane_, tile, query, own_lanes);
    const RunningRow running{scratch_.row_max[row], scratch_.row_sum[row], sums_ + row * padded_,
                             padded_ / kLanes};
    float* scores = scores_ + row * kScoreStride;
    const auto scale = static_cast<float>(problem_.scale * std::numbers::log2e);
    if (threshold_ == 0) {
      softmax_row<false>(scores, lanes, nullptr, tile.vectors, scale, running);
      return;
    }
    uint16_t kept[kTileKeeps];
    softmax_row<true>(scores, lanes, tile_keeps(problem_, plane_, tile, query, kept), tile.vectors,
                      scale, running);
  }

  void finish_row(int64_t query, KeyRange computed) {
    const int64_t row = query - computed.begin;
    const bool sees_keys = query >= computed.begin && query < computed.end &&
                           is_valid_query(problem_, plane_.batch, query) &&
                           scratch_.row_sum[row] != 0;  // NaN stays
    const int64_t to = plane_.runs.row(query);
    T* out = args_.out.row(plane_.batch, plane_.head, to);
    float& logsumexp = args_.logsumexp[plane_.index * problem_.shape.query_length + to];
    if (!sees_keys) {
      std::fill(out, out + dim_, T{0.0f});
      logsumexp = -kInfinity;
      return;
    }
    const float sum = scratch_.row_sum[row];
    unpack_row(sums_ + row * padded_, dim_, dropout_scale(problem_.dropout_rate) / sum, out);
    logsumexp = (scratch_.row_max[row] + std::log2(sum)) * std::numbers::ln2_v<float>;
  }

  const AttentionProblem& problem_;
  const AttentionForward<T>& args_;
  const AttentionPlane& plane_;
  const PackedKeys& keys_;
  TileScratch& scratch_;
  const int64_t dim_, padded_;
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
  const int64_t num_vectors = round_up(problem.shape.key_length, kLanes) / kLanes;
  const auto run_plane = [&](int64_t index) {
    const AttentionPlane plane = plane_of(problem, index);
    PackedKeys& keys = thread_keys();
    reserve_keys(problem, plane, keys);
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

}  // namespace

void attention_forward(const AttentionProblem& problem, const AttentionForward<float>& args) {
  run_forward<FloatProducts>(problem, args);
}

void attention_forward(const AttentionProblem& problem, const AttentionForward<Bf16>& args,
                       bool on_pairs) {
  on_pairs ? run_forward<PairProducts>(problem, args) : run_forward<FloatProducts>(problem, args);
}

}  // namespace lra::kernels::avx512
