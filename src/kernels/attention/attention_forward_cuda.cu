// The forward pass of blocked attention (kernels/attention/attention.h) on a CUDA device.
#include "kernels/attention/attention_cuda_launch.h"
#include "kernels/attention/attention_cuda_scores.h"

namespace lra::kernels::cuda {
namespace {

// Maximum over the four lanes that share a row.
__device__ inline float largest_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float sum_of_row(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

template <typename T, int E>
struct ForwardTiles {
  static constexpr int kSize = kTile * kStride<T, E>, kNumSlots = kSlots<T, E>;
  T q[kSize], k[kNumSlots][kSize], v[kNumSlots][kSize];
  Indices rows, columns[kNumSlots];
};

// The running softmax of the rows g and g + 8 of a lane's four.
struct Running {
  float largest[2] = {-kInfinity, -kInfinity}, sum[2] = {0, 0};
};

// Turns scores, some of which may be hidden, into weights relative to the largest so far; sums and
// results so far shrink with it.
template <int E>
__device__ inline void update(float factor, bool may_hide, float (&scores)[kSteps][4],
                              Running& running, float (&out)[E / 8][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = -kInfinity;
    for (int n = 0; n < kSteps; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][half * 2], scores[n][half * 2 + 1]));
    }
    largest = fmaxf(running.largest[half], largest_of_row(largest));
    // A row that has seen no key, or only NaN, has no largest score.
    const float base = may_hide && largest == -kInfinity ? 0 : largest;
    const float shrink = fast_exp2((running.largest[half] - base) * factor);
    float sum = 0;
    for (int n = 0; n < kSteps; ++n) {
      for (int odd = 0; odd < 2; ++odd) {
        float& score = scores[n][half * 2 + odd];
        score = fast_exp2((score - base) * factor);
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

// Turns scores into weights of the Laplace function. Instead of a sum: 1 in rows that see a key.
__device__ inline void take_laplace(float scale, float (&scores)[kSteps][4], Running& running) {
#pragma unroll
  for (int n = 0; n < kSteps; ++n) {
#pragma unroll
    for (int element = 0; element < 4; ++element) {
      float& score = scores[n][element];
      if (score == -kInfinity) {
        score = 0;
      } else {
        score = laplace_weight(score * scale);
        running.sum[element / 2] = 1;
      }
    }
  }
}

// Writes the results of the tile's rows, their largest scores and sums.
template <typename T, int E>
__device__ inline void finish_rows(const CudaAttention& p, const AttentionForward<T>& args,
                                   const RowTile& tile, Running& running,
                                   const float (&out)[E / 8][4]) {
  float factors[2];
  for (int half = 0; half < 2; ++half) {
    float sum = sum_of_row(running.sum[half]);
    if (p.laplace && sum != 0) {
      sum = 1;
      running.largest[half] = 0;
    }
    factors[half] = sum == 0 ? 0 : p.dropout_scale / sum;
    const int lane = threadIdx.x % 32;
    const int index = tile.begin + threadIdx.x / 32 * kWarpRows + lane / 4 + half * 8;
    if (lane % 4 != 0 || index >= tile.end) continue;
    const int64_t row = int64_t{tile.plane} * p.queries.length + tile.runs.row(index);
    args.softmax.largest[row] = running.largest[half];
    args.softmax.sum[row] = sum;
  }
  store_rows<T, E>(p.value_dim, out, args.out, tile, factors);
}

template <typename T, int E>
__global__ void __launch_bounds__(kThreads, kBlocks<T, E>)
    forward_kernel(CudaAttention p, AttentionForward<T> args) {
  auto& tiles = *reinterpret_cast<ForwardTiles<T, E>*>(dynamic_shared());
  const RowTile tile = own_tile(p, p.queries);
  if (tile.begin == tile.end) return;
  const bool all_used = find_rows(p.queries, tile, tiles.rows);
  load_tile<T, E>(p, p.head_dim, tiles.q, args.q, tile, tiles.rows.tensor);
  ColumnTiles<true> column_tiles(p, p.queries, p.keys, tile, all_used);
  float out[E / 8][4] = {};
  Running running;
  DropBits drop_bits;
  const auto load = [&](int slot, int first) {
    const Indices& columns = tiles.columns[slot];
    load_tile<T, E>(p, p.head_dim, tiles.k[slot], args.k, tile, columns.tensor, first);
    load_tile<T, E>(p, p.value_dim, tiles.v[slot], args.v, tile, columns.tensor, first);
  };
  const auto compute = [&](int slot) {
    const Indices& columns = tiles.columns[slot];
    float scores[kSteps][4] = {};
    add_scores<T, E>(scores, tiles.q, tiles.k[slot]);
    const bool may_hide = finish_scores<true>(p, tile, tiles.rows, columns, args.bias, scores);
    if (p.laplace) {
      take_laplace(p.scale, scores, running);
    } else {
      update<E>(log2_scale(p), may_hide, scores, running, out);
    }
    // The factor of the weights that are kept comes after the sums: weights near 1 lose nothing in
    // bfloat16.
    if (p.dropout_threshold != 0) {
      for_each_dropped(p, tile, tiles.rows, columns, drop_bits,
                       [&](int step, int element) { scores[step][element] = 0; });
    }
    add_weighted<T, E>(out, scores, tiles.v[slot]);
  };
  for_each_tile(column_tiles, tiles.columns, load, compute);
  finish_rows<T, E>(p, args, tile, running, out);
}

}  // namespace

template <typename T>
void attention_forward(const AttentionProblem& problem, ListForm form,
                       const AttentionForward<T>& args, Stream stream) {
  const CudaAttention p = described<T>(problem, form, args.bias, {args.q, args.k, args.v});
  with_width(p, [&](auto width) {
    constexpr int E = decltype(width)::value;
    launch(forward_kernel<T, E>, num_tiles(p, p.queries), kThreads, sizeof(ForwardTiles<T, E>),
           stream, p, args);
  });
}

template void attention_forward<float>(const AttentionProblem&, ListForm,
                                       const AttentionForward<float>&, Stream);
template void attention_forward<Bf16>(const AttentionProblem&, ListForm,
                                      const AttentionForward<Bf16>&, Stream);

}  // namespace lra::kernels::cuda
