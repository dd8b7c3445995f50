// The backward pass of blocked attention (kernels/attention/attention.h) on a CUDA device.
//
// The gradients take two passes, each with its own rows: queries for that of the queries, keys for
// those of keys and values. Scores are made twice, and nothing is added atomically: the sums have
// one order.
#include "kernels/attention/attention_cuda_launch.h"
#include "kernels/attention/attention_cuda_scores.h"

namespace lra::kernels::cuda {
namespace {

// mean[row] = grad_out . out - grad_logsumexp, a warp for each row [planes, length] of the tensors.
template <typename T>
__global__ void mean_kernel(int64_t rows, int64_t length, int64_t heads, int columns,
                            HeadView<const T> grad_out, HeadView<const T> all_out,
                            const float* grad_logsumexp, float* mean) {
  const int64_t row = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  const bool inside = row < rows;
  float sum = 0;
  if (inside) {
    const int64_t plane = row / length, index = row % length;
    const T* grad = grad_out.row(plane / heads, plane % heads, index);
    const T* out = all_out.row(plane / heads, plane % heads, index);
    for (int e = threadIdx.x % 32; e < columns; e += 32) sum += float(grad[e]) * float(out[e]);
  }
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (!inside || threadIdx.x % 32 != 0) return;
  mean[row] = grad_logsumexp == nullptr ? sum : sum - grad_logsumexp[row];
}

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
      float slope;
      if (p.laplace) {
        slope = laplace_slope(score * p.scale) * products[n][element];
      } else {
        const float weight =
            weight_of(score, factor, statistics.largest[half], statistics.one_over_sum[half]);
        slope = weight * (products[n][element] - statistics.mean[half]);
      }
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

// A relative bias: sums of the slopes of a tile of queries by r = key - query + 63, with queries
// counted from the tile's first. A row of the scratch memory has them; it is added up later.
constexpr int kSlopeStride = kTile + 1;
__host__ __device__ inline int sums_of_tile(const CudaAttention& p) {
  return p.keys.length + kTile - 1;
}

// Adds the slopes of a tile of keys. A thread has the r that are its number modulo 128, so none of
// its sums is another's, and their order is that of the keys.
__device__ inline void add_by_distance(const Indices& columns, const float (&slopes)[kSteps][4],
                                       float* shared, float* sums) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * kWarpRows + lane / 4;
#pragma unroll
  for (int n = 0; n < kSteps; ++n) {
#pragma unroll
    for (int element = 0; element < 4; ++element) {
      shared[(row + element / 2 * 8) * kSlopeStride + n * 8 + lane % 4 * 2 + element % 2] =
          slopes[n][element];
    }
  }
  __syncthreads();
  int at = -1;
  float sum = 0;
  for (int column = 0; column < kTile; ++column) {
    const int key = columns.axis[column];
    const int query = (key + kTile - 1 - static_cast<int>(threadIdx.x)) & (kThreads - 1);
    if (key < 0 || query >= kTile) continue;
    if (at != key - query + kTile - 1) {
      if (at >= 0) sums[at] += sum;
      at = key - query + kTile - 1;
      sum = 0;
    }
    sum += shared[query * kSlopeStride + column];
  }
  if (at >= 0) sums[at] += sum;
}

// Tiles of rows of queries, of the gradient of their results, of keys and of values.
template <typename T>
struct FourTiles {
  const T *q, *grad, *k, *v;
};

// The slopes of the rows' scores against the columns.
template <typename T, int E>
__device__ inline void find_slopes(const CudaAttention& p, const AttentionBackward<T>& args,
                                   const RowTile& tile, const RowStatistics& statistics,
                                   const Indices& rows, const Indices& columns,
                                   const FourTiles<T>& of, DropBits& drop_bits,
                                   float (&slopes)[kSteps][4]) {
  float scores[kSteps][4] = {};
  add_scores<T, E>(scores, of.q, of.k);
  finish_scores<true>(p, tile, rows, columns, args.bias, scores);
  add_scores<T, E>(slopes, of.grad, of.v);
  slopes_of_queries(p, tile, rows, columns, statistics, scores, drop_bits, slopes);
}

// kByDistance: with sums for the gradient of a relative bias, which take registers.
template <typename T, int E, bool kByDistance>
__global__ void __launch_bounds__(kThreads, kBlocks<T, E>)
    query_gradients_kernel(CudaAttention p, AttentionBackward<T> args, AttentionScratch scratch) {
  auto& tiles = *reinterpret_cast<QueryTiles<T, E>*>(dynamic_shared());
  const RowTile tile = own_tile(p, p.queries);
  if (tile.begin == tile.end) return;
  const bool all_used = find_rows(p.queries, tile, tiles.rows);
  load_tile<T, E>(p, p.head_dim, tiles.q, args.q, tile, tiles.rows.tensor);
  load_tile<T, E>(p, p.value_dim, tiles.grad, args.grad_out, tile, tiles.rows.tensor);
  const RowStatistics statistics = row_statistics(p, args, scratch.mean, tile, tiles.rows);
  [[maybe_unused]] float* const sums =
      scratch.by_distance + (kByDistance ? int64_t{blockIdx.x} * sums_of_tile(p) : 0);
  if constexpr (kByDistance) {
    for (int n = threadIdx.x; n < sums_of_tile(p); n += kThreads) sums[n] = 0;
  }
  ColumnTiles<true> column_tiles(p, p.queries, p.keys, tile, all_used);
  float grad_q[E / 8][4] = {};
  DropBits drop_bits;
  const auto load = [&](int slot, int first) {
    const Indices& columns = tiles.columns[slot];
    load_tile<T, E>(p, p.head_dim, tiles.k[slot], args.k, tile, columns.tensor, first);
    load_tile<T, E>(p, p.value_dim, tiles.v[slot], args.v, tile, columns.tensor, first);
  };
  const auto compute = [&](int slot) {
    float slopes[kSteps][4] = {};
    find_slopes<T, E>(p, args, tile, statistics, tiles.rows, tiles.columns[slot],
                      {tiles.q, tiles.grad, tiles.k[slot], tiles.v[slot]}, drop_bits, slopes);
    add_weighted<T, E>(grad_q, slopes, tiles.k[slot]);
    if constexpr (kByDistance) {
      auto* shared = reinterpret_cast<float*>(dynamic_shared() + sizeof(tiles));
      add_by_distance(tiles.columns[slot], slopes, shared, sums);
    }
  };
  for_each_tile(column_tiles, tiles.columns, load, compute);
  store_rows<T, E>(p.head_dim, grad_q, args.grad_q, tile, {p.scale, p.scale});
}

template <typename T, int E>
struct BiasTiles {
  static constexpr int kSize = kTile * kStride<T, E>, kNumSlots = kSlots<T, E>;
  T q[kNumSlots][kSize], grad[kNumSlots][kSize], k[kNumSlots][kSize], v[kNumSlots][kSize];
  Indices rows[kNumSlots], columns[kNumSlots];
};

// Finds the neighboring keys from `first` on that any of the rows may see, as ColumnTiles does.
__device__ inline void find_columns(const CudaAttention& p, const RowTile& tile, int first,
                                    bool all_rows_used, Indices& columns) {
  const Columns<true> visible(p, p.queries, p.keys, tile);
  const int n = threadIdx.x, key = first + n;
  const bool used = n < kTile && visible.contains(key) && !is_masked(p.keys, tile.batch, key);
  if (n < kTile) columns.axis[n] = columns.tensor[n] = used ? key : -1;
  const bool has_window = p.queries.before >= 0 || p.queries.after >= 0 || p.queries.step > 0;
  const bool all_used = __syncthreads_count(used) == kTile;
  if (n == 0) {
    columns.seen_by_all = all_rows_used && all_used && !has_window && p.scale > 0;
    columns.first = first;
  }
  __syncthreads();
}

// The batch shares one table of score biases: its gradient is their sum, in their order. A block
// takes a tile of 64 queries and 64 adjacent keys of one head.
template <typename T, int E>
__global__ void __launch_bounds__(kThreads)
    bias_gradients_kernel(CudaAttention p, AttentionBackward<T> args, const float* mean) {
  auto& tiles = *reinterpret_cast<BiasTiles<T, E>*>(dynamic_shared());
  constexpr bool kTwoSlots = BiasTiles<T, E>::kNumSlots == 2;
  const int key_tiles = (p.keys.length + kTile - 1) / kTile;
  const int tiles_of_head = tiles_of_block(p.queries) * blocks_of(p.queries);
  const int first_key = static_cast<int>(blockIdx.x) % key_tiles * kTile;
  const int tile_of_head = static_cast<int>(blockIdx.x) / key_tiles;  // those of all heads in turn
  const int head = tile_of_head / tiles_of_head, batch = static_cast<int>(p.planes) / p.heads;
  const auto tile_of = [&](int example) {
    return row_tile(p, p.queries, example * p.heads * tiles_of_head + tile_of_head);
  };
  const RowTile first_tile = tile_of(0);
  if (first_tile.begin == first_tile.end) return;
  const auto load = [&](int example) {
    const int slot = kTwoSlots ? example % 2 : 0;
    const RowTile tile = tile_of(example);
    Indices &rows = tiles.rows[slot], &columns = tiles.columns[slot];
    const bool all_rows_used = find_rows(p.queries, tile, rows);
    find_columns(p, tile, first_key, all_rows_used, columns);
    load_tile<T, E>(p, p.head_dim, tiles.q[slot], args.q, tile, rows.tensor);
    load_tile<T, E>(p, p.value_dim, tiles.grad[slot], args.grad_out, tile, rows.tensor);
    load_tile<T, E>(p, p.head_dim, tiles.k[slot], args.k, tile, columns.tensor);
    load_tile<T, E>(p, p.value_dim, tiles.v[slot], args.v, tile, columns.tensor);
  };
  float sums[kSteps][4] = {};
  load(0);
  for (int example = 0; example < batch; ++example) {
    const int slot = kTwoSlots ? example % 2 : 0;
    wait_for_copies();
    __syncthreads();  // these tiles are there, and nobody reads those before any more
    if (kTwoSlots && example + 1 < batch) load(example + 1);
    const RowTile tile = tile_of(example);
    const RowStatistics statistics = row_statistics(p, args, mean, tile, tiles.rows[slot]);
    float slopes[kSteps][4] = {};
    DropBits drop_bits;
    find_slopes<T, E>(p, args, tile, statistics, tiles.rows[slot], tiles.columns[slot],
                      {tiles.q[slot], tiles.grad[slot], tiles.k[slot], tiles.v[slot]}, drop_bits,
                      slopes);
#pragma unroll
    for (int n = 0; n < kSteps; ++n) {
#pragma unroll
      for (int element = 0; element < 4; ++element) sums[n][element] += slopes[n][element];
    }
    if (kTwoSlots || example + 1 == batch) continue;
    __syncthreads();
    load(example + 1);
  }
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * kWarpRows + lane / 4;
  for (int n = 0; n < kSteps; ++n) {
    for (int element = 0; element < 4; ++element) {
      const int query = first_tile.begin + row + element / 2 * 8;
      const int key = first_key + n * 8 + lane % 4 * 2 + element % 2;
      if (query < first_tile.end && key < p.keys.length) {
        args.grad_bias.row(head, query)[key] = sums[n][element];
      }
    }
  }
}

// The gradient of a relative bias: 32 distances in a block, whose other threads each add up some of
// the tiles of queries, then these sums in their order.
constexpr int kDistances = 32, kDistanceThreads = 1024;
__global__ void __launch_bounds__(kDistanceThreads)
    distance_gradients_kernel(CudaAttention p, const float* by_distance, ScoreBias<float> to) {
  auto* sums = reinterpret_cast<float*>(dynamic_shared());
  const int distances = p.queries.length + p.keys.length - 1;
  const int blocks = (distances + kDistances - 1) / kDistances, head = blockIdx.x / blocks;
  const int column = threadIdx.x % kDistances, share = threadIdx.x / kDistances;
  const int distance = static_cast<int>(blockIdx.x) % blocks * kDistances + column;
  const int tiles = blocks_of(p.queries) * tiles_of_block(p.queries);
  const int batch = static_cast<int>(p.planes) / p.heads;
  float sum = 0;
  for (int n = share; n < batch * tiles; n += kDistanceThreads / kDistances) {
    const int index = (n / tiles * p.heads + head) * tiles + n % tiles;
    const RowTile tile = row_tile(p, p.queries, index);
    // r of the distance key - query + length - 1
    const int r = distance - (p.queries.length - 1) + tile.begin + kTile - 1;
    if (tile.begin < tile.end && distance < distances && r >= 0 && r < sums_of_tile(p)) {
      sum += by_distance[int64_t{index} * sums_of_tile(p) + r];
    }
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (share != 0 || distance >= distances) return;
  for (int n = 1; n < kDistanceThreads / kDistances; ++n) sum += sums[n * kDistances + column];
  to.data[head * to.head_stride + distance - (p.queries.length - 1)] = sum;
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
  tiles.mean[slot][n] = query < 0 || p.laplace ? 0 : mean[row];
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
      float weight = 0, slope_of_weight = 0;
      if (p.laplace) {
        weight = laplace_weight(score * p.scale);
        slope_of_weight = laplace_slope(score * p.scale);
      } else {
        weight = slope_of_weight =
            weight_of(score, factor, tiles.largest[slot][column], tiles.one_over_sum[slot][column]);
      }
      const bool dropped =
          p.dropout_threshold != 0 &&
          (tiles.dropped[slot][column][lane / 4 + element / 2 * 8] >> warp & 1) != 0;
      const float product = dropped ? 0 : products[n][element] * p.dropout_scale;
      const float slope = slope_of_weight * (product - tiles.mean[slot][column]);
      products[n][element] = score == -kInfinity ? 0 : slope;
      scores[n][element] = dropped || score == -kInfinity ? 0 : weight;
    }
  }
}

template <typename T, int E>
__global__ void __launch_bounds__(kThreads, kBlocks<T, E>)
    key_gradients_kernel(CudaAttention p, AttentionBackward<T> args, const float* mean) {
  auto& tiles = *reinterpret_cast<KeyTiles<T, E>*>(dynamic_shared());
  const RowTile tile = own_tile(p, p.keys);
  if (tile.begin == tile.end) return;
  const bool all_used = find_rows(p.keys, tile, tiles.rows);
  load_tile<T, E>(p, p.head_dim, tiles.k, args.k, tile, tiles.rows.tensor);
  load_tile<T, E>(p, p.value_dim, tiles.v, args.v, tile, tiles.rows.tensor);
  ColumnTiles<false> column_tiles(p, p.keys, p.queries, tile, all_used);
  float grad_k[E / 8][4] = {}, grad_v[E / 8][4] = {};
  const auto load = [&](int slot, int first) {
    const Indices& columns = tiles.columns[slot];
    load_tile<T, E>(p, p.head_dim, tiles.q[slot], args.q, tile, columns.tensor, first);
    load_tile<T, E>(p, p.value_dim, tiles.grad[slot], args.grad_out, tile, columns.tensor, first);
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
  store_rows<T, E>(p.head_dim, grad_k, args.grad_k, tile, {p.scale, p.scale});
  store_rows<T, E>(p.value_dim, grad_v, args.grad_v, tile, {p.dropout_scale, p.dropout_scale});
}

}  // namespace

int64_t relative_bias_scratch(const AttentionProblem& problem, ListForm form) {
  const CudaAttention p = described<float>(problem, form, {}, {});
  return num_tiles(p, p.queries) * sums_of_tile(p);
}

template <typename T>
void attention_backward(const AttentionProblem& problem, ListForm form,
                        const AttentionBackward<T>& args, const AttentionScratch& scratch,
                        Stream stream) {
  CudaAttention p = described<T>(problem, form, args.bias, {args.q, args.k, args.v, args.grad_out});
  p.keys.offsets = scratch.key_offsets;
  p.keys.blocks = scratch.query_blocks;
  const int64_t rows = p.planes * p.queries.length;
  launch(mean_kernel<T>, parts_of(rows, kThreads / 32), kThreads, 0, stream, rows, p.queries.length,
         p.heads, p.value_dim, args.grad_out, args.out, args.grad_logsumexp, scratch.mean);
  const bool by_distance = args.grad_bias.data != nullptr && args.grad_bias.is_relative();
  LRA_CHECK_EQ(by_distance, scratch.by_distance != nullptr);
  with_width(p, [&](auto width) {
    constexpr int E = decltype(width)::value;
    constexpr size_t kQueryBytes = sizeof(QueryTiles<T, E>);
    const auto of_queries = [&](auto kernel, size_t more_bytes) {
      launch(kernel, num_tiles(p, p.queries), kThreads, kQueryBytes + more_bytes, stream, p, args,
             scratch);
    };
    if (by_distance) {
      of_queries(query_gradients_kernel<T, E, true>, kTile * kSlopeStride * sizeof(float));
    } else {
      of_queries(query_gradients_kernel<T, E, false>, 0);
    }
    launch(key_gradients_kernel<T, E>, num_tiles(p, p.keys), kThreads, sizeof(KeyTiles<T, E>),
           stream, p, args, scratch.mean);
    if (by_distance) {
      const int64_t distances = p.queries.length + p.keys.length - 1;
      launch(distance_gradients_kernel, p.heads * parts_of(distances, kDistances), kDistanceThreads,
             kDistanceThreads * sizeof(float), stream, p, scratch.by_distance, args.grad_bias);
    }
    if (args.grad_bias.data == nullptr || by_distance) return;
    const int64_t tiles = int64_t{p.heads} * blocks_of(p.queries) * tiles_of_block(p.queries);
    launch(bias_gradients_kernel<T, E>, tiles * parts_of(p.keys.length, kTile), kThreads,
           sizeof(BiasTiles<T, E>), stream, p, args, scratch.mean);
  });
}

template void attention_backward<float>(const AttentionProblem&, ListForm,
                                        const AttentionBackward<float>&, const AttentionScratch&,
                                        Stream);
template void attention_backward<Bf16>(const AttentionProblem&, ListForm,
                                       const AttentionBackward<Bf16>&, const AttentionScratch&,
                                       Stream);

}  // namespace lra::kernels::cuda
