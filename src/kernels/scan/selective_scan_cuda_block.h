// The memory of a block of a selective scan on a CUDA device: rows of a chunk of time in shared
// memory, and states in registers. Included only by *.cu files.
#pragma once

#include <numbers>

#include "kernels/cuda/vectors.h"
#include "kernels/scan/scan_cuda_lanes.h"
#include "kernels/scan/selective_scan.h"

namespace lra::kernels::cuda {

// Positions of a chunk, for M states in a lane: few enough for 48 KB of their states.
template <int M>
constexpr int kChunk = 64 / M;

// log(1 + exp(x)) and its slope.
struct Softplus {
  __device__ explicit Softplus(float x) {
    const float y = expf(-fabsf(x));
    value = (x > 0 ? x : 0) + log1pf(y);
    slope = (x > 0 ? 1 : y) / (1 + y);
  }
  float value, slope;
};

// A block takes kScanThreads / lanes channels of a group. A thread has M neighboring states of one
// of them. Channels and states that do not exist are 0 in shared memory.
template <typename T, int M>
struct SelectiveBlock {
  __device__ SelectiveBlock(const SelectiveScan<T>& p, int lanes)
      : p(p),
        lanes(lanes),
        channels(kScanThreads / lanes),
        states(M * lanes),
        own(static_cast<int>(threadIdx.x) / lanes),
        state(static_cast<int>(threadIdx.x) % lanes * M),
        task(SelectiveTasks<T>(p, channels).task(blockIdx.x)),
        rows(p, task),
        skip(p.skip && is_there() ? p.skip[channel()] : 0),
        b(reinterpret_cast<float*>(dynamic_shared())),
        c(b + kChunk<M> * states),
        x(c + kChunk<M> * states),
        dt(x + kChunk<M> * channels),
        slope(dt + kChunk<M> * channels),
        grad(slope + kChunk<M> * channels),
        slots(grad + kChunk<M> * channels) {}

  // The shared memory of a forward or a backward pass.
  static size_t shared_bytes(int lanes, bool backward) {
    const int channels = kScanThreads / lanes, states = M * lanes;
    const int numbers =
        kChunk<M> * (2 * states + 2 * channels) +
        backward * (kChunk<M> * 2 * channels + (kChunk<M> + 1) * M * (kScanThreads + lanes));
    return sizeof(float) * static_cast<size_t>(numbers);
  }

  __device__ bool is_there() const { return own < task.count; }
  // The first lane of a channel writes for all.
  __device__ bool writes() const { return state == 0 && is_there(); }
  __device__ int64_t channel() const { return task.channel + own; }
  // The place of a row's element of the thread's channel.
  __device__ int64_t of_x(int64_t time) const { return rows.of_x(time) + own; }
  __device__ int steps(int64_t begin) const {
    return rows.length - begin < kChunk<M> ? static_cast<int>(rows.length - begin) : kChunk<M>;
  }

  // Copies the chunk from `begin` on into shared memory; given the gradient of y, also that and the
  // slopes of dt.
  __device__ void read(int64_t begin, const T* grad_y = nullptr) const {
    __syncthreads();  // the chunk before
    for_each_place(steps(begin), channels, [&](int64_t step, int column) {
      const int64_t n = step * channels + column, at = rows.of_x(begin + step) + column;
      const bool is_there = column < task.count;
      const Softplus softplus(
          is_there ? static_cast<float>(p.raw_dt[at]) + p.dt_bias[task.channel + column] : 0);
      x[n] = is_there ? static_cast<float>(p.x[at]) : 0;
      dt[n] = softplus.value;
      if (grad_y == nullptr) return;
      slope[n] = softplus.slope;
      grad[n] = is_there ? static_cast<float>(grad_y[at]) : 0;
    });
    for_each_place(steps(begin), states, [&](int64_t step, int column) {
      const int64_t n = step * states + column, at = rows.of_b(begin + step) + column;
      b[n] = column < p.states ? static_cast<float>(p.b[at]) : 0;
      c[n] = column < p.states ? static_cast<float>(p.c[at]) : 0;
    });
    __syncthreads();
  }

  // The numbers of the thread's channel, or of its states, in a row of the chunk.
  __device__ float of_channel(const float* tile, int step) const {
    return tile[step * channels + own];
  }
  __device__ void of_states(float (&to)[M], const float* tile, int step) const {
#pragma unroll
    for (int m = 0; m < M; m += 4) {
      const auto four = load_vector<4>(tile + step * states + state + m);
      for (int n = 0; n < 4; ++n) to[m + n] = four.values[n];
    }
  }

  // The states of all threads before (n = 0) and after the steps of a chunk, number m of each. The
  // distance of two rows keeps the sums below free of bank conflicts.
  __device__ float* slot(int n, int m) const {
    return slots + (n * M + m) * (kScanThreads + lanes);
  }
  __device__ float& own_slot(int n, int m) const { return slot(n, m)[threadIdx.x]; }

  // Writes the chunk's rows of an array like b: the sums over the block's channels of weight(place
  // in a tile) times what the slots after each step hold.
  template <typename F>
  __device__ void sum_channels(int64_t begin, float* to, const F& weight) const {
    for_each_place(steps(begin), states, [&](int64_t row, int n) {
      if (n >= p.states) return;
      const int step = static_cast<int>(row);
      const float* const of_state = slot(step + 1, n % M) + n / M;
      float sum = 0;
      for (int column = 0; column < channels; ++column) {
        sum = fmaf(weight(step * channels + column), of_state[column * lanes], sum);
      }
      to[rows.of_b(begin + row) + n] = sum;
    });
  }

  // Writes 0 where rows of an array like x, or like b, are padding.
  __device__ void clear_padding(T* to) const {
    for_each_place(p.length - rows.length, channels, [&](int64_t row, int column) {
      if (column < task.count) to[rows.of_x(rows.length + row) + column] = T(0.0f);
    });
  }
  __device__ void clear_padding_of_states(float* to) const {
    for_each_place(p.length - rows.length, states, [&](int64_t row, int n) {
      if (n < p.states) to[rows.of_b(rows.length + row) + n] = 0;
    });
  }

  const SelectiveScan<T> p;
  const int lanes, channels, states;  // channels and states of a row in shared memory
  const int own, state;               // the thread's channel, and the first of its states
  const SelectiveTask task;
  const SelectiveRows rows;
  const float skip;                                      // the channel's
  float *const b, *const c;                              // [kChunk, states]
  float *const x, *const dt, *const slope, *const grad;  // [kChunk, channels]
  float* const slots;
};

// The states of a thread, with their parameters.
template <int M>
struct SelectiveStates {
  float a[M], bias[M], h[M];  // a log2(e)

  template <typename T>
  __device__ explicit SelectiveStates(const SelectiveBlock<T, M>& block) {
    const SelectiveScan<T>& p = block.p;
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const bool is_there = block.is_there() && block.state + m < p.states;
      const int64_t at = (block.state + m) * p.channels + block.channel();
      a[m] = is_there ? p.a[at] * std::numbers::log2e_v<float> : 0;
      bias[m] = is_there && p.bias ? p.bias[at] : 0;
      h[m] = 0;
    }
  }

  // The next position's states; returns their part of its output.
  template <typename T>
  __device__ float advance(const SelectiveBlock<T, M>& block, int step) {
    const float dt = block.of_channel(block.dt, step), u = dt * block.of_channel(block.x, step);
    float b[M], c[M], sum = 0;
    block.of_states(b, block.b, step);
    block.of_states(c, block.c, step);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      h[m] = fmaf(fast_exp2(dt * a[m]), h[m], (b[m] + bias[m]) * u);
      sum = fmaf(c[m], h[m], sum);
    }
    return sum;
  }
};

}  // namespace lra::kernels::cuda
