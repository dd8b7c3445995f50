// The backward pass of blocked attention (kernels/attention/attention.h) on a CUDA device.
//
// The gradients take two passes, each with its own rows: queries for that of the queries, keys for
// those of keys and values. Scores are made twice, and nothing is added atomically: the sums have
// one order.
#include "kernels/attention/attention_cuda_launch.h"
#include "kernels/attention/attention_cuda_scores.h"

namespace lra::kernels::cuda {
namespace {

// mean[row] = grad_out . out - grad_logsumexp, a warp for each row of the tensors.
template <typename T>
__global__ void mean_kernel(CudaAttention p, AttentionBackward<T> args, float* mean) {
  const int64_t row = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  const bool inside = row < p.planes * p.queries.length;
  float sum = 0;
  if (inside) {
    const int64_t plane = row / p.queries.length, index = row % p.queries.length;
    const T* grad = args.grad_out.row(plane / p.heads, plane % p.heads, index);
    const T* out = args.out.row(plane / p.heads, plane % p.heads, index);
    for (int e = threadIdx.x % 32; e < p.head_dim; e += 32) sum += float(grad[e]) * float(out[e]);
  }
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (!inside || threadIdx.x % 32 != 0) return;
  mean[row] = args.grad_logsumexp == nullptr ? sum : sum - args.grad_logsumexp[row];
}

// Blocks that a multiprocessor is to hold at the same time: three keep to 168 registers a thread.
// An H100 made 12 % more steps a second with them than with the two that fit otherwise.
template <typename T, int E>
constexpr int kGradientBlocks = E <= 64 && sizeof(T) == 2 ? 3 : 1;

// The statistics of the rows g and g + 8 of a lane's four.
struct RowStatistics {
  float largest[2], one_over_sum[2], mean[2];
};

// The weight of a score of a row.
__device__ inline float weight_of(float score, float factor, float largest, float one_over_sum) {
  return fast_exp2((score - largest) * factor) * one_over_sum;
}

template <typename T>
__device__ inline RowStatistics row_statistics(const CudaAttention& p,
                                               const AttentionBackward<T>& args, const float* mean,
                                               const RowTile& tile, const Indices& rows) {
  RowStatistics statistics;
  for (int half = 0; half < 2; ++half) {
    const int n = threadIdx.x / 32 * kWarpRows + threadIdx.x % 32 / 4 + half * 8;
    const int64_t row = int64_t{tile.plane} * p.queries.length + rows.tensor[n];
    const bool used = rows.tensor[n] >= 0;
    statistics.largest[half] = used ? args.softmax.largest[row] : 0;
    statistics.one_over_sum[half] = used ? 1 / args.softmax.sum[row] : 0;
    statistics.mean[half] = used ? mean[row] : 0;
  }
  return statistics;
}

// Scores and products grad_out v^T become the slopes of the scores, in rows of queries: d loss / d
// score. They replace the products.
__device__ inline void slopes_of_queries(const CudaAttention& p, const RowTile& tile,
                                         const Indices& rows, const Indices& columns,
                                         const RowStatistics& statistics,
                                         const float (&scores)[kSteps][4], DropBits& drop_bits,
                                         float (&products)[kSteps][4]) {
  const float factor = log2_scale(p);
  if (p.dropout_threshold != 0) {
    for (int n = 0; n < kSteps; ++n) {
      for (int element = 0; element < 4; ++element) products[n][element] *= p.dropout_scale;
    }
    for_each_dropped(p, tile, rows, columns, drop_bits,
                     [&](int step, int element) { products[step][element] = 0; });
  }
#pragma unroll
  for (int n = 0; n < kSteps; ++n) {
#pragma unroll
    for (int element = 0; element < 4; ++element) {
      const float score = scores[n][element];
      const int half = element / 2;
      const float weight =
          weight_of(score, factor, statistics.largest[half], statistics.one_over_sum[half]);
      const float slope = weight * (products[n][element] - statistics.mean[half]);
      // A row that sees nothing has no largest score either.
      products[n][element] = score == -kInfinity ? 0 : slope;
    }
  }
}

template <typename T, int E>
struct QueryTiles {
  static constexpr int kSize = kTile * kStride<T, E>, kNumSlots = kSlots<T, E>;
  T q[kSize], grad[kSize], k[kNumSlots][kSize], v[kNumSlots][kSize];
  Indices rows, columns[kNumSlots];
};

// The slopes of the rows' scores against the columns whose keys and values the slot has.
template <typename T, int E>
__device__ inline void slopes_of_slot(const CudaAttention& p, const AttentionBackward<T>& args,
                                      const RowTile& tile, const RowStatistics& statistics,
                                      const QueryTiles<T, E>& tiles, int slot, DropBits& drop_bits,
                                      float (&slopes)[kSteps][4]) {
  const Indices& columns = tiles.columns[slot];
  float scores[kSteps][4] = {};
  add_scores<T, E>(scores, tiles.q, tiles.k[slot]);
  finish_scores<true>(p, tile, tiles.rows, columns, args.bias, scores);
  add_scores<T, E>(slopes, tiles.grad, tiles.v[slot]);
  slopes_of_queries(p, tile, tiles.rows, columns, statistics, scores, drop_bits, slopes);
}

template <typename T, int E>
__global__ void __launch_bounds__(kThreads, kGradientBlocks<T, E>)
    query_gradients_kernel(CudaAttention p, AttentionBackward<T> args, const float* mean) {
  auto& tiles = *reinterpret_cast<QueryTiles<T, E>*>(dynamic_shared());
  const RowTile tile = row_tile(p, p.queries, static_cast<int>(blockIdx.x));
  if (tile.begin == tile.end) return;
  const bool all_used = find_rows(p.queries, tile, tiles.rows);
  load_tile<T, E>(p, tiles.q, args.q, tile, tiles.rows.tensor);
  load_tile<T, E>(p, tiles.grad, args.grad_out, tile, tiles.rows.tensor);
  const RowStatistics statistics = row_statistics(p, args, mean, tile, tiles.rows);
  ColumnTiles<true> column_tiles(p, p.queries, p.keys, tile, all_used);
  float grad_q[E / 8][4] = {};
  DropBits drop_bits;
  const auto load = [&](int slot, int first) {
    const Indices& columns = tiles.columns[slot];
    load_tile<T, E>(p, tiles.k[slot], args.k, tile, columns.tensor, first);
    load_tile<T, E>(p, tiles.v[slot], args.v, tile, columns.tensor, first);
  };
  const auto compute = [&](int slot) {
    float slopes[kSteps][4] = {};
    slopes_of_slot<T, E>(p, args, tile, statistics, tiles, slot, drop_bits, slopes);
    add_weighted<T, E>(grad_q, slopes, tiles.k[slot]);
  };
  for_each_tile(column_tiles, tiles.columns, load, compute);
  store_rows<T, E>(p, grad_q, args.grad_q, tile, {p.scale, p.scale});
}

// The batch shares one table of score biases: its gradient is their sum, in their order. A block
// takes a tile of 64 queries and 64 adjacent keys of one head.
template <typename T, int E>
__global__ void __launch_bounds__(kThreads)
    bias_gradients_kernel(CudaAttention p, AttentionBackward<T> args, const float* mean) {
  auto& tiles = *reinterpret_cast<QueryTiles<T, E>*>(dynamic_shared());
  const int key_tiles = (p.keys.length + kTile - 1) / kTile;
  const int tiles_of_head = tiles_of_block(p.queries) * blocks_of(p.queries);
  const int first_key = static_cast<int>(blockIdx.x) % key_tiles * kTile;
  const int tile_of_head =
      static_cast<int>(blockIdx.x) / key_tiles;  // all heads' one after another
  const int head = tile_of_head / tiles_of_head;
  float sums[kSteps][4] = {};
  RowTile tile;
  for (int batch = 0; batch < static_cast<int>(p.planes) / p.heads; ++batch) {
    tile = row_tile(p, p.queries, batch * p.heads * tiles_of_head + tile_of_head);
    if (tile.begin == tile.end) return;
    __syncthreads();  // the tiles of the batch element before
    find_rows(p.queries, tile, tiles.rows);
    const Columns<true> visible(p, p.queries, p.keys, tile);
    Indices& columns = tiles.columns[0];
    if (threadIdx.x < kTile) {
      const int key = first_key + static_cast<int>(threadIdx.x);
      const bool used = visible.contains(key) && !is_masked(p.keys, batch, key);
      columns.axis[threadIdx.x] = columns.tensor[threadIdx.x] = used ? key : -1;
    }
    columns.seen_by_all = false;
    columns.first = first_key;
    __syncthreads();
    load_tile<T, E>(p, tiles.q, args.q, tile, tiles.rows.tensor);
    load_tile<T, E>(p, tiles.grad, args.grad_out, tile, tiles.rows.tensor);
    load_tile<T, E>(p, tiles.k[0], args.k, tile, columns.tensor);
    load_tile<T, E>(p, tiles.v[0], args.v, tile, columns.tensor);
    wait_for_copies();
    __syncthreads();
    const RowStatistics statistics = row_statistics(p, args, mean, tile, tiles.rows);
    float slopes[kSteps][4] = {};
    DropBits drop_bits;
    slopes_of_slot<T, E>(p, args, tile, statistics, tiles, 0, drop_bits, slopes);
    for (int n = 0; n < kSteps; ++n) {
      for (int element = 0; element < 4; ++element) sums[n][element] += slopes[n][element];
    }
  }
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * kWarpRows + lane / 4;
  for (int n = 0; n < kSteps; ++n) {
    for (int element = 0; element < 4; ++element) {
      const int query = tile.begin + row + element / 2 * 8;
      const int key = first_key + n * 8 + lane % 4 * 2 + element % 2;
      if (query < tile.end && key < p.keys.length) {
        args.grad_bias.row(head, query)[key] = sums[n][element];
      }
    }
  }
}

template <typename T, int E>
struct KeyTiles {
  static constexpr int kSize = kTile * kStride<T, E>, kNumSlots = kSlots<T, E>;
  T k[kSize], v[kSize], q[kNumSlots][kSize], grad[kNumSlots][kSize];
  Indices rows, columns[kNumSlots];
  float largest[kNumSlots][kTile], one_over_sum[kNumSlots][kTile], mean[kNumSlots][kTile];
  // Dropout decisions by query and place of the key in 16: bit n is set if dropout takes the weight
  // of key 16 n + place.
  uint8_t dropped[kNumSlots][kTile][16];
};

// Largest score, sum and mean of a slot's queries.
template <typename T, int E>
__device__ inline void load_statistics(const CudaAttention& p, const AttentionBackward<T>& args,
                                       const float* mean, const RowTile& tile, int slot,
                                       KeyTiles<T, E>& tiles) {
  const int n = threadIdx.x;
  if (n >= kTile) return;
  const int query = tiles.columns[slot].tensor[n];
  const int64_t row = int64_t{tile.plane} * p.queries.length + query;
  tiles.largest[slot][n] = query < 0 ? 0 : args.softmax.largest[row];
  tiles.one_over_sum[slot][n] = query < 0 ? 0 : 1 / args.softmax.sum[row];
  tiles.mean[slot][n] = query < 0 ? 0 : mean[row];
}

// Finds the weights of a slot that dropout takes. Keys are rows and neighbors; those 16 apart share
// their random numbers. `first_query`: of the slot's queries if they are neighbors, else -1.
template <typename T, int E>
__device__ inline void find_dropped(const CudaAttention& p, const RowTile& tile, int slot,
                                    int first_query, KeyTiles<T, E>& tiles) {
  if (p.dropout_threshold == 0) return;
  const auto first = static_cast<uint32_t>(tile.begin) + threadIdx.x % 16, place = first % 16;
  const bool two_groups = tile.begin % 128 > 128 - kTile;  // of keys with the same random numbers
  for (int n = threadIdx.x / 16; n < kTile; n += kThreads / 16) {
    const int query = first_query >= 0 ? first_query + n : tiles.columns[slot].axis[n];
    if (query < 0) continue;
    const auto bits_of = [&](uint32_t group) {
      return drops_of_place(p, tile.plane, static_cast<uint32_t>(query), group * 16 + place);
    };
    uint32_t bits = bits_of(first / 128);
    if (two_groups) bits |= bits_of(first / 128 + 1) << 8;
    tiles.dropped[slot][n][threadIdx.x % 16] = static_cast<uint8_t>(bits >> first % 128 / 16);
  }
}

// Turns, in rows of keys, products k q^T into the weights that enter grad_v, without the factor of
// dropout, and products v grad_out^T into the slopes.
template <typename T, int E>
__device__ inline void slopes_of_keys(const CudaAttention& p, const AttentionBackward<T>& args,
                                      const RowTile& tile, const KeyTiles<T, E>& tiles, int slot,
                                      float (&scores)[kSteps][4], float (&products)[kSteps][4]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  finish_scores<false>(p, tile, tiles.rows, tiles.columns[slot], args.bias, scores);
  const float factor = log2_scale(p);
#pragma unroll
  for (int n = 0; n < kSteps; ++n) {
#pragma unroll
    for (int element = 0; element < 4; ++element) {
      const int column = n * 8 + lane % 4 * 2 + element % 2;
      const float score = scores[n][element];
      const float weight = score == -kInfinity
                               ? 0
                               : weight_of(score, factor, tiles.largest[slot][column],
                                           tiles.one_over_sum[slot][column]);
      const bool dropped =
          p.dropout_threshold != 0 &&
          (tiles.dropped[slot][column][lane / 4 + element / 2 * 8] >> warp & 1) != 0;
      const float product = dropped ? 0 : products[n][element] * p.dropout_scale;
      const float slope = weight * (product - tiles.mean[slot][column]);
      products[n][element] = score == -kInfinity ? 0 : slope;
      scores[n][element] = dropped ? 0 : weight;
    }
  }
}

template <typename T, int E>
__global__ void __launch_bounds__(kThreads, kGradientBlocks<T, E>)
    key_gradients_kernel(CudaAttention p, AttentionBackward<T> args, const float* mean) {
  auto& tiles = *reinterpret_cast<KeyTiles<T, E>*>(dynamic_shared());
  const RowTile tile = row_tile(p, p.keys, static_cast<int>(blockIdx.x));
  if (tile.begin == tile.end) return;
  const bool all_used = find_rows(p.keys, tile, tiles.rows);
  load_tile<T, E>(p, tiles.k, args.k, tile, tiles.rows.tensor);
  load_tile<T, E>(p, tiles.v, args.v, tile, tiles.rows.tensor);
  ColumnTiles<false> column_tiles(p, p.keys, p.queries, tile, all_used);
  float grad_k[E / 8][4] = {}, grad_v[E / 8][4] = {};
  const auto load = [&](int slot, int first) {
    const Indices& columns = tiles.columns[slot];
    load_tile<T, E>(p, tiles.q[slot], args.q, tile, columns.tensor, first);
    load_tile<T, E>(p, tiles.grad[slot], args.grad_out, tile, columns.tensor, first);
    load_statistics<T, E>(p, args, mean, tile, slot, tiles);
    find_dropped<T, E>(p, tile, slot, first, tiles);
  };
  const auto compute = [&](int slot) {
    float weights[kSteps][4] = {}, slopes[kSteps][4] = {};
    add_scores<T, E>(weights, tiles.k, tiles.q[slot]);
    add_scores<T, E>(slopes, tiles.v, tiles.grad[slot]);
    slopes_of_keys<T, E>(p, args, tile, tiles, slot, weights, slopes);
    add_weighted<T, E>(grad_v, weights, tiles.grad[slot]);
    add_weighted<T, E>(grad_k, slopes, tiles.q[slot]);
  };
  for_each_tile(column_tiles, tiles.columns, load, compute);
  store_rows<T, E>(p, grad_k, args.grad_k, tile, {p.scale, p.scale});
  store_rows<T, E>(p, grad_v, args.grad_v, tile, {p.dropout_scale, p.dropout_scale});
}

}  // namespace

template <typename T>
void attention_backward(const AttentionProblem& problem, const AttentionBackward<T>& args,
                        const AttentionScratch& scratch, Stream stream) {
  CudaAttention p = described<T>(problem, {args.q, args.k, args.v, args.grad_out});
  p.keys.offsets = scratch.key_offsets;
  p.keys.blocks = scratch.query_blocks;
  launch(mean_kernel<T>, parts_of(p.planes * p.queries.length, kThreads / 32), kThreads, 0, stream,
         p, args, scratch.mean);
  with_width(p.head_dim, [&](auto width) {
    constexpr int E = decltype(width)::value;
    constexpr size_t kQueryBytes = sizeof(QueryTiles<T, E>);
    launch(query_gradients_kernel<T, E>, num_tiles(p, p.queries), kThreads, kQueryBytes, stream, p,
           args, scratch.mean);
    launch(key_gradients_kernel<T, E>, num_tiles(p, p.keys), kThreads, sizeof(KeyTiles<T, E>),
           stream, p, args, scratch.mean);
    if (args.grad_bias.data == nullptr) return;
    const int64_t tiles = int64_t{p.heads} * blocks_of(p.queries) * tiles_of_block(p.queries);
    launch(bias_gradients_kernel<T, E>, tiles * parts_of(p.keys.length, kTile), kThreads,
           kQueryBytes, stream, p, args, scratch.mean);
  });
}

template void attention_backward<float>(const AttentionProblem&, const AttentionBackward<float>&,
                                        const AttentionScratch&, Stream);
template void attention_backward<Bf16>(const AttentionProblem&, const AttentionBackward<Bf16>&,
                                       const AttentionScratch&, Stream);

}  // namespace lra::kernels::cuda
