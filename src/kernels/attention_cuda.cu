// Blocked attention on a CUDA device: kernels/attention.h with the tiles of attention_cuda_tiles.h.
//
// The gradients take two passes, each with its own rows: queries for that of the queries, keys for
// those of keys and values. Scores are made twice, and nothing is added atomically: the sums have
// one order.
#include <algorithm>
#include <type_traits>

#include "kernels/attention_cuda_tiles.h"

namespace lra::kernels::cuda {
namespace {

constexpr float kInfinity = __builtin_huge_valf();

// Over the four lanes that share a row.
__device__ inline float largest_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float sum_of_row(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Calls use(step, element, query, key) for the pairs of this lane in rows of queries.
template <typename F>
__device__ inline void for_each_pair(const Indices& at, F use) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * kWarpRows + lane / 4;
#pragma unroll
  for (int element = 0; element < 4; ++element) {
    const int query = at.rows[row + element / 2 * 8];
    // Every second step first: columns 16 apart share their random numbers.
#pragma unroll
    for (int turn = 0; turn < kSteps; ++turn) {
      const int step = turn % (kSteps / 2) * 2 + turn / (kSteps / 2);
      use(step, element, query, at.columns[step * 8 + lane % 4 * 2 + element % 2]);
    }
  }
}

// Scores of queries in base 2 (times log2 e, so that exp2 gives the weights), -infinity for pairs
// that do not see each other.
__device__ inline void finish_scores(const CudaAttention& p, const RowTile& tile, const Indices& at,
                                     const ScoreBias<const float>& bias,
                                     float (&scores)[kSteps][4]) {
  const float factor = p.scale * kLog2E;
  for_each_pair(at, [&](int step, int element, int query, int key) {
    float& score = scores[step][element];
    if (query < 0 || key < 0 || !sees(p, tile, query, key)) {
      score = -kInfinity;
    } else {
      score *= factor;
      if (bias.data != nullptr) score += bias.row(tile.head, query)[key] * kLog2E;
    }
  });
}

template <typename T, int E>
struct ForwardTiles {
  T q[kTile * kStride<T, E>], k[kTile * kStride<T, E>], v[kTile * kStride<T, E>];
  Indices at;
};

// The running softmax of the rows g and g + 8 of a lane's four.
struct Running {
  float largest[2] = {-kInfinity, -kInfinity}, sum[2] = {0, 0};
};

// Turns scores into weights relative to the largest so far; sums and results so far shrink with it.
template <int E>
__device__ inline void update(float (&scores)[kSteps][4], Running& running,
                              float (&out)[E / 8][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = running.largest[half];
    for (int n = 0; n < kSteps; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][half * 2], scores[n][half * 2 + 1]));
    }
    largest = largest_of_row(largest);
    // A row that has seen no key, or nothing but NaN, has no largest.
    const float base = largest == -kInfinity ? 0 : largest;
    const float shrink = exp2f(running.largest[half] - base);
    float sum = 0;
    for (int n = 0; n < kSteps; ++n) {
      for (int odd = 0; odd < 2; ++odd) {
        float& score = scores[n][half * 2 + odd];
        score = exp2f(score - base);
        sum += score;
      }
    }
    running.sum[half] = running.sum[half] * shrink + sum;
    running.largest[half] = largest;
    for (int n = 0; n < E / 8; ++n) {
      out[n][half * 2] *= shrink;
      out[n][half * 2 + 1] *= shrink;
    }
  }
}

// Sets dropped weights to 0. The factor of those that are kept comes after the sums: weights near 1
// lose nothing in bfloat16.
__device__ inline void drop_weights(const CudaAttention& p, const RowTile& tile, const Indices& at,
                                    float (&weights)[kSteps][4]) {
  if (p.dropout_threshold == 0) return;
  Dropped dropped(p, tile.plane);
  for_each_pair(at, [&](int step, int element, int query, int key) {
    if (query >= 0 && key >= 0 && dropped(query, key)) weights[step][element] = 0;
  });
}

template <typename T, int E>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(CudaAttention p, AttentionForward<T> args) {
  auto& tiles = *reinterpret_cast<ForwardTiles<T, E>*>(dynamic_shared());
  const RowTile tile = row_tile(p, p.queries, static_cast<int>(blockIdx.x));
  if (tile.begin == tile.end) return;
  find_rows(p.queries, tile, tiles.at);
  __syncthreads();
  load_tile<T, E>(p, tiles.q, args.q, tile, tiles.at.tensor_rows);
  const Columns<true> columns(p, p.queries, p.keys, tile);
  float out[E / 8][4] = {};
  Running running;
  for (int first = 0; first < columns.count(); first += kTile) {
    if (!find_columns<true>(p.queries, p.keys, columns, tile, first, tiles.at)) continue;
    load_tile<T, E>(p, tiles.k, args.k, tile, tiles.at.tensor_columns);
    load_tile<T, E>(p, tiles.v, args.v, tile, tiles.at.tensor_columns);
    __syncthreads();
    float scores[kSteps][4] = {};
    add_scores<T, E>(scores, tiles.q, tiles.k);
    finish_scores(p, tile, tiles.at, args.bias, scores);
    update<E>(scores, running, out);
    drop_weights(p, tile, tiles.at, scores);
    add_weighted<T, E>(out, scores, tiles.v);
  }
  float factors[2];
  for (int half = 0; half < 2; ++half) {
    const float sum = sum_of_row(running.sum[half]);
    factors[half] = sum == 0 ? 0 : p.dropout_scale / sum;
    const int lane = threadIdx.x % 32;
    const int index = tile.begin + threadIdx.x / 32 * kWarpRows + lane / 4 + half * 8;
    if (lane % 4 != 0 || index >= tile.end) continue;
    args.logsumexp[int64_t{tile.plane} * p.queries.length + tile.runs.row(index)] =
        sum == 0 ? -kInfinity : running.largest[half] * kLn2 + logf(sum);
  }
  store_rows<T, E>(p, out, args.out, tile, factors);
}

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

template <typename T, int E>
struct BackwardTiles {
  T q[kTile * kStride<T, E>], grad[kTile * kStride<T, E>], k[kTile * kStride<T, E>],
      v[kTile * kStride<T, E>];
  Indices at;
  float logsumexp[kTile], mean[kTile];  // of the tile's queries; the first in base 2
  // By query and key of the tile, whether dropout takes the weight.
  uint8_t dropped[kTile][kTile + 4];  // 1: yes
};

// logsumexp and mean of the queries whose rows of the tensors are `rows`; 64 threads.
template <typename T, int E>
__device__ inline void load_statistics(const CudaAttention& p, const AttentionBackward<T>& args,
                                       const float* mean, const RowTile& tile, const int* rows,
                                       BackwardTiles<T, E>& tiles) {
  const int n = threadIdx.x;
  if (n >= kTile) return;
  const int64_t row = int64_t{tile.plane} * p.queries.length + rows[n];
  tiles.logsumexp[n] = rows[n] < 0 ? 0 : args.logsumexp[row] * kLog2E;
  tiles.mean[n] = rows[n] < 0 ? 0 : mean[row];
}

// Scores become weights and their products the slopes of the scores, in rows of queries: d loss / d
// score. `products` are grad_out v^T.
template <typename T, int E>
__device__ inline void slopes_of_queries(const CudaAttention& p, const RowTile& tile,
                                         const BackwardTiles<T, E>& tiles,
                                         const float (&scores)[kSteps][4],
                                         float (&products)[kSteps][4]) {
  const int row = threadIdx.x / 32 * kWarpRows + threadIdx.x % 32 / 4;
  Dropped dropped(p, tile.plane);
  for_each_pair(tiles.at, [&](int step, int element, int query, int key) {
    float& slope = products[step][element];
    const int n = row + element / 2 * 8;
    if (scores[step][element] == -kInfinity) {
      slope = 0;
      return;
    }
    const float weight = exp2f(scores[step][element] - tiles.logsumexp[n]);
    if (p.dropout_threshold != 0) slope = dropped(query, key) ? 0 : slope * p.dropout_scale;
    slope = weight * (slope - tiles.mean[n]);
  });
}

// The rows of a backward pass over queries, in shared memory, and their statistics.
template <typename T, int E>
__device__ inline void load_queries(const CudaAttention& p, const AttentionBackward<T>& args,
                                    const float* mean, const RowTile& tile,
                                    BackwardTiles<T, E>& tiles) {
  find_rows(p.queries, tile, tiles.at);
  __syncthreads();
  load_tile<T, E>(p, tiles.q, args.q, tile, tiles.at.tensor_rows);
  load_tile<T, E>(p, tiles.grad, args.grad_out, tile, tiles.at.tensor_rows);
  load_statistics<T, E>(p, args, mean, tile, tiles.at.tensor_rows, tiles);
}

// The slopes of the rows' scores against the columns whose indices the tile has.
template <typename T, int E>
__device__ inline void slopes_of_columns(const CudaAttention& p, const AttentionBackward<T>& args,
                                         const RowTile& tile, BackwardTiles<T, E>& tiles,
                                         float (&slopes)[kSteps][4]) {
  load_tile<T, E>(p, tiles.k, args.k, tile, tiles.at.tensor_columns);
  load_tile<T, E>(p, tiles.v, args.v, tile, tiles.at.tensor_columns);
  __syncthreads();
  float scores[kSteps][4] = {};
  add_scores<T, E>(scores, tiles.q, tiles.k);
  finish_scores(p, tile, tiles.at, args.bias, scores);
  add_scores<T, E>(slopes, tiles.grad, tiles.v);
  slopes_of_queries<T, E>(p, tile, tiles, scores, slopes);
}

template <typename T, int E>
__global__ void __launch_bounds__(kThreads)
    query_gradients_kernel(CudaAttention p, AttentionBackward<T> args, const float* mean) {
  auto& tiles = *reinterpret_cast<BackwardTiles<T, E>*>(dynamic_shared());
  const RowTile tile = row_tile(p, p.queries, static_cast<int>(blockIdx.x));
  if (tile.begin == tile.end) return;
  load_queries<T, E>(p, args, mean, tile, tiles);
  const Columns<true> columns(p, p.queries, p.keys, tile);
  float grad_q[E / 8][4] = {};
  for (int first = 0; first < columns.count(); first += kTile) {
    if (!find_columns<true>(p.queries, p.keys, columns, tile, first, tiles.at)) continue;
    float slopes[kSteps][4] = {};
    slopes_of_columns<T, E>(p, args, tile, tiles, slopes);
    add_weighted<T, E>(grad_q, slopes, tiles.k);
  }
  store_rows<T, E>(p, grad_q, args.grad_q, tile, {p.scale, p.scale});
}

// The table of score biases is one for all of the batch: its gradient is their sum, in their order.
// A block takes a tile of 64 queries and 64 neighbouring keys of one head.
template <typename T, int E>
__global__ void __launch_bounds__(kThreads)
    bias_gradients_kernel(CudaAttention p, AttentionBackward<T> args, const float* mean) {
  auto& tiles = *reinterpret_cast<BackwardTiles<T, E>*>(dynamic_shared());
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
    load_queries<T, E>(p, args, mean, tile, tiles);
    const Columns<true> columns(p, p.queries, p.keys, tile);
    if (threadIdx.x < kTile) {
      const int key = first_key + static_cast<int>(threadIdx.x);
      const bool used = columns.contains(key) && !is_masked(p.keys, batch, key);
      tiles.at.columns[threadIdx.x] = tiles.at.tensor_columns[threadIdx.x] = used ? key : -1;
    }
    __syncthreads();
    float slopes[kSteps][4] = {};
    slopes_of_columns<T, E>(p, args, tile, tiles, slopes);
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

// Which weights of the tile dropout takes; keys are rows and neighbours, of which those 16 apart
// share their random numbers.
template <typename T, int E>
__device__ inline void find_dropped(const CudaAttention& p, const RowTile& tile,
                                    BackwardTiles<T, E>& tiles) {
  if (p.dropout_threshold == 0) return;
  for (int n = threadIdx.x; n < kTile * 16; n += kThreads) {
    const int column = n / 16;
    if (tiles.at.columns[column] < 0) continue;
    Dropped dropped(p, tile.plane);
    for (int row = n % 16; row < kTile; row += 16) {
      tiles.dropped[column][row] = dropped(static_cast<uint32_t>(tiles.at.columns[column]),
                                           static_cast<uint32_t>(tile.begin + row));
    }
  }
}

// In rows of keys: scores become the weights that enter grad_v, without the factor of dropout, and
// products the slopes.
template <typename T, int E>
__device__ inline void slopes_of_keys(const CudaAttention& p, const AttentionBackward<T>& args,
                                      const RowTile& tile, const BackwardTiles<T, E>& tiles,
                                      float (&scores)[kSteps][4], float (&products)[kSteps][4]) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * kWarpRows + lane / 4;
#pragma unroll
  for (int n = 0; n < kSteps; ++n) {
#pragma unroll
    for (int element = 0; element < 4; ++element) {
      const int in_rows = row + element / 2 * 8, in_columns = n * 8 + lane % 4 * 2 + element % 2;
      const int key = tiles.at.rows[in_rows], query = tiles.at.columns[in_columns];
      float& weight = scores[n][element];
      float& slope = products[n][element];
      if (query < 0 || key < 0 || !sees(p, tile, query, key)) {
        weight = slope = 0;
        continue;
      }
      float score = weight * p.scale * kLog2E;
      if (args.bias.data != nullptr) score += args.bias.row(tile.head, query)[key] * kLog2E;
      weight = exp2f(score - tiles.logsumexp[in_columns]);
      const bool dropped = p.dropout_threshold != 0 && tiles.dropped[in_columns][in_rows];
      slope = weight * ((dropped ? 0 : slope * p.dropout_scale) - tiles.mean[in_columns]);
      if (dropped) weight = 0;
    }
  }
}

template <typename T, int E>
__global__ void __launch_bounds__(kThreads)
    key_gradients_kernel(CudaAttention p, AttentionBackward<T> args, const float* mean) {
  auto& tiles = *reinterpret_cast<BackwardTiles<T, E>*>(dynamic_shared());
  const RowTile tile = row_tile(p, p.keys, static_cast<int>(blockIdx.x));
  if (tile.begin == tile.end) return;
  find_rows(p.keys, tile, tiles.at);
  __syncthreads();
  load_tile<T, E>(p, tiles.k, args.k, tile, tiles.at.tensor_rows);
  load_tile<T, E>(p, tiles.v, args.v, tile, tiles.at.tensor_rows);
  const Columns<false> columns(p, p.keys, p.queries, tile);
  float grad_k[E / 8][4] = {}, grad_v[E / 8][4] = {};
  for (int first = 0; first < columns.count(); first += kTile) {
    if (!find_columns<false>(p.keys, p.queries, columns, tile, first, tiles.at)) continue;
    load_tile<T, E>(p, tiles.q, args.q, tile, tiles.at.tensor_columns);
    load_tile<T, E>(p, tiles.grad, args.grad_out, tile, tiles.at.tensor_columns);
    load_statistics<T, E>(p, args, mean, tile, tiles.at.tensor_columns, tiles);
    find_dropped<T, E>(p, tile, tiles);
    __syncthreads();
    float weights[kSteps][4] = {}, slopes[kSteps][4] = {};
    add_scores<T, E>(weights, tiles.k, tiles.q);
    add_scores<T, E>(slopes, tiles.v, tiles.grad);
    slopes_of_keys<T, E>(p, args, tile, tiles, weights, slopes);
    add_weighted<T, E>(grad_v, weights, tiles.grad);
    add_weighted<T, E>(grad_k, slopes, tiles.q);
  }
  store_rows<T, E>(p, grad_k, args.grad_k, tile, {p.scale, p.scale});
  store_rows<T, E>(p, grad_v, args.grad_v, tile, {p.dropout_scale, p.dropout_scale});
}

template <typename T>
bool is_aligned(const HeadView<const T>& view) {
  constexpr int64_t kVector = 16 / sizeof(T);
  return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 && view.batch_stride % kVector == 0 &&
         view.head_stride % kVector == 0 && view.row_stride % kVector == 0;
}

template <typename T>
CudaAttention described(const AttentionProblem& problem,
                        std::initializer_list<HeadView<const T>> inputs) {
  const AttentionShape& shape = problem.shape;
  const AttentionVisibility& visible = problem.visible;
  if (shape.head_dim > kMaxHeadDim) {
    throw Error({.where = "attention on a GPU",
                 .what = "heads are " + std::to_string(shape.head_dim) + " wide",
                 .expected = "at most " + std::to_string(kMaxHeadDim),
                 .advice = "take more heads, or compute on the CPU, without --device"});
  }
  CudaAttention p;
  p.heads = static_cast<int>(shape.heads);
  p.head_dim = static_cast<int>(shape.head_dim);
  p.planes = shape.batch * shape.heads;
  const auto query_length = static_cast<int>(shape.query_length);
  const auto key_length = static_cast<int>(shape.key_length);
  const int64_t longest = std::max(shape.query_length, shape.key_length);
  const auto left = static_cast<int>(std::min(visible.left, longest));
  const auto right = static_cast<int>(std::min(visible.right, longest));
  p.queries = {.length = query_length,
               .block = query_length,
               .mask = visible.query_mask,
               .before = left,
               .after = right};
  p.keys = {.length = key_length,
            .block = key_length,
            .mask = visible.key_mask,
            .before = right,
            .after = left};
  if (visible.blocks != nullptr) {
    p.lists = static_cast<int>(visible.blocks->lists);
    p.queries.block = static_cast<int>(visible.blocks->query_block);
    p.keys.block = static_cast<int>(visible.blocks->key_block);
    p.queries.offsets = visible.blocks->offsets;
    p.queries.blocks = visible.blocks->key_blocks;
  }
  if (visible.runs != nullptr) p.runs = *visible.runs;
  p.scale = static_cast<float>(problem.scale);
  p.dropout_threshold = lra::dropout_threshold(problem.dropout_rate);
  p.dropout_scale = lra::dropout_scale(problem.dropout_rate);
  p.dropout_key = problem.dropout_key;
  p.aligned = shape.head_dim % (16 / int64_t{sizeof(T)}) == 0;
  for (const auto& view : inputs) p.aligned = p.aligned && is_aligned(view);
  return p;
}

// Calls use(constant) with head_dim rounded up to a width that is compiled.
template <typename F>
void with_width(int head_dim, F use) {
  if (head_dim <= 16) return use(std::integral_constant<int, 16>());
  if (head_dim <= 32) return use(std::integral_constant<int, 32>());
  if (head_dim <= 64) return use(std::integral_constant<int, 64>());
  if (head_dim <= 80) return use(std::integral_constant<int, 80>());
  return use(std::integral_constant<int, 128>());
}

int64_t num_tiles(const CudaAttention& p, const Axis& rows) {
  return p.planes * blocks_of(rows) * tiles_of_block(rows);
}

}  // namespace

template <typename T>
void attention_forward(const AttentionProblem& problem, const AttentionForward<T>& args,
                       Stream stream) {
  const CudaAttention p = described<T>(problem, {args.q, args.k, args.v});
  with_width(p.head_dim, [&](auto width) {
    constexpr int E = decltype(width)::value;
    launch(forward_kernel<T, E>, num_tiles(p, p.queries), kThreads, sizeof(ForwardTiles<T, E>),
           stream, p, args);
  });
}

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
    constexpr size_t kBytes = sizeof(BackwardTiles<T, E>);
    launch(query_gradients_kernel<T, E>, num_tiles(p, p.queries), kThreads, kBytes, stream, p, args,
           scratch.mean);
    launch(key_gradients_kernel<T, E>, num_tiles(p, p.keys), kThreads, kBytes, stream, p, args,
           scratch.mean);
    if (args.grad_bias.data == nullptr) return;
    const int64_t tiles = int64_t{p.heads} * blocks_of(p.queries) * tiles_of_block(p.queries);
    launch(bias_gradients_kernel<T, E>, tiles * parts_of(p.keys.length, kTile), kThreads, kBytes,
           stream, p, args, scratch.mean);
  });
}

template void attention_forward<float>(const AttentionProblem&, const AttentionForward<float>&,
                                       Stream);
template void attention_forward<Bf16>(const AttentionProblem&, const AttentionForward<Bf16>&,
                                      Stream);
template void attention_backward<float>(const AttentionProblem&, const AttentionBackward<float>&,
                                        const AttentionScratch&, Stream);
template void attention_backward<Bf16>(const AttentionProblem&, const AttentionBackward<Bf16>&,
                                       const AttentionScratch&, Stream);

}  // namespace lra::kernels::cuda
