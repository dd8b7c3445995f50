// The memory of a block of a selective scan on a CUDA device: rows of a chunk of time in shared
// memory, and states in registers. Included only by *.cu files.
#pragma once

#include <numbers>

#include "kernels/cuda/vectors.h"
#include "kernels/scan/scan_cuda_lanes.h"
#include "kernels/scan/selective_scan.h"

namespace lra::kernels::cuda {

// Positions of a chunk, for N numbers of states in a lane: few enough for 48 KB of them.
template <int N>
constexpr int kChunk = 64 / N;

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
// of them, N numbers: real parts, and with P = 2 planes then imaginary ones. Channels and states
// that do not exist are 0 in shared memory.
template <typename T, int M, int P>
struct SelectiveBlock {
  static constexpr int N = P * M;

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
        c(b + kChunk<N> * P * states),
        x(c + kChunk<N> * P * states),
        dt(x + kChunk<N> * channels),
        slope(dt + kChunk<N> * channels),
        grad(slope + kChunk<N> * channels),
        slots(grad + kChunk<N> * channels) {}

  // The shared memory of a forward or a backward pass.
  static size_t shared_bytes(int lanes, bool backward) {
    const int channels = kScanThreads / lanes, states = M * lanes;
    const int numbers =
        kChunk<N> * (2 * P * states + 2 * channels) +
        backward * (kChunk<N> * 2 * channels + (kChunk<N> + 1) * N * (kScanThreads + lanes));
    return sizeof(float) * static_cast<size_t>(numbers);
  }

  __device__ bool is_there() const { return own < task.count; }
  // The first lane of a channel writes for all.
  __device__ bool writes() const { return state == 0 && is_there(); }
  __device__ int64_t channel() const { return task.channel + own; }
  // The place of a row's element of the thread's channel.
  __device__ int64_t of_x(int64_t time) const { return rows.of_x(time) + own; }
  __device__ int steps(int64_t begin) const {
    return rows.length - begin < kChunk<N> ? static_cast<int>(rows.length - begin) : kChunk<N>;
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
    for_each_place(steps(begin), P * states, [&](int64_t step, int column) {
      const int64_t n = step * P * states + column, from = number(column);
      const int64_t at = rows.of_b(begin + step) + from;
      b[n] = from >= 0 ? static_cast<float>(p.b[at]) : 0;
      c[n] = from >= 0 ? static_cast<float>(p.c[at]) : 0;
    });
    __syncthreads();
  }

  // The place in a row of an array like b of one in shared memory; negative if it does not exist.
  __device__ int64_t number(int column) const {
    const int plane = column >= states, n = column - plane * states;
    return n < p.states ? plane * p.states + n : -1;
  }

  // The numbers of the thread's channel, or of its states, in a row of the chunk.
  __device__ float of_channel(const float* tile, int step) const {
    return tile[step * channels + own];
  }
  __device__ void of_states(float (&to)[N], const float* tile, int step) const {
#pragma unroll
    for (int m = 0; m < N; m += 4) {
      const int row = step * P + m / M;  // of a plane
      const auto four = load_vector<4>(tile + row * states + state + m % M);
      for (int n = 0; n < 4; ++n) to[m + n] = four.values[n];
    }
  }

  // The states of all threads before (n = 0) and after the steps of a chunk, number m of each. The
  // distance of two rows keeps the sums below free of bank conflicts.
  __device__ float* slot(int n, int m) const {
    return slots + (n * N + m) * (kScanThreads + lanes);
  }
  __device__ float& own_slot(int n, int m) const { return slot(n, m)[threadIdx.x]; }

  // Writes the chunk's rows of an array like b: the sums over the block's channels of weight(place
  // in a tile) times what the slots after each step hold, or its conjugate.
  template <typename F>
  __device__ void sum_channels(int64_t begin, float* to, bool conjugate, const F& weight) const {
    for_each_place(steps(begin), P * states, [&](int64_t row, int column_of_b) {
      const int64_t at = number(column_of_b);
      if (at < 0) return;
      const int step = static_cast<int>(row), plane = column_of_b >= states;
      const int n = column_of_b - plane * states;
      const float* const of_state = slot(step + 1, plane * M + n % M) + n / M;
      float sum = 0;
      for (int column = 0; column < channels; ++column) {
        sum = fmaf(weight(step * channels + column), of_state[column * lanes], sum);
      }
      to[rows.of_b(begin + row) + at] = plane == 1 && conjugate ? -sum : sum;
    });
  }

  // Writes 0 where rows of an array like x, or like b, are padding.
  __device__ void clear_padding(T* to) const {
    for_each_place(p.length - rows.length, channels, [&](int64_t row, int column) {
      if (column < task.count) to[rows.of_x(rows.length + row) + column] = T(0.0f);
    });
  }
  __device__ void clear_padding_of_states(float* to) const {
    for_each_place(p.length - rows.length, P * states, [&](int64_t row, int column) {
      const int64_t at = number(column);
      if (at >= 0) to[rows.of_b(rows.length + row) + at] = 0;
    });
  }

  const SelectiveScan<T> p;
  const int lanes, channels, states;  // channels, and states of a plane, of rows in shared memory
  const int own, state;               // the thread's channel, and the first of its states
  const SelectiveTask task;
  const SelectiveRows rows;
  const float skip;                                      // the channel's
  float *const b, *const c;                              // [kChunk, P, states]
  float *const x, *const dt, *const slope, *const grad;  // [kChunk, channels]
  float* const slots;
};

// exp of a step times a pole, whose imaginary part only complex states have.
struct SelectiveDecay {
  float re, im;
};

// The states of a thread, with their parameters.
template <int M, int P>
struct SelectiveStates {
  static constexpr int N = P * M;

  float pole[N], bias[N], h[N];  // poles as a log2(e), and then frequency / pi

  template <typename T>
  __device__ explicit SelectiveStates(const SelectiveBlock<T, M, P>& block) {
    const SelectiveScan<T>& p = block.p;
#pragma unroll
    for (int m = 0; m < N; ++m) {
      const bool is_there = block.is_there() && block.state + m % M < p.states;
      const int64_t at = (block.state + m % M) * p.channels + block.channel();
      const float scale = m < M ? std::numbers::log2e_v<float> : std::numbers::inv_pi_v<float>;
      pole[m] = is_there ? (m < M ? p.a : p.frequency)[at] * scale : 0;
      bias[m] = is_there && p.bias ? p.bias[m / M * p.states * p.channels + at] : 0;
      h[m] = 0;
    }
  }

  __device__ SelectiveDecay decay(float dt, int m) const {
    const float size = fast_exp2(dt * pole[m]);
    if constexpr (P == 1) {
      return {size, 0};
    } else {
      float sine, cosine;
      sincospif(dt * pole[M + m], &sine, &cosine);
      return {size * cosine, size * sine};
    }
  }

  // The next position's states; returns their part of its output.
  template <typename T>
  __device__ float advance(const SelectiveBlock<T, M, P>& block, int step) {
    const float dt = block.of_channel(block.dt, step), u = dt * block.of_channel(block.x, step);
    float b[N], c[N], sum = 0;
    block.of_states(b, block.b, step);
    block.of_states(c, block.c, step);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const SelectiveDecay by = decay(dt, m);
      const float re = h[m];
      h[m] = fmaf(by.re, re, (b[m] + bias[m]) * u);
      if constexpr (P == 2) {
        const int i = M + m;
        h[m] = fmaf(-by.im, h[i], h[m]);
        h[i] = fmaf(by.im, re, fmaf(by.re, h[i], (b[i] + bias[i]) * u));
        sum = fmaf(-c[i], h[i], sum);
      }
      sum = fmaf(c[m], h[m], sum);
    }
    return sum;
  }
};

}  // namespace lra::kernels::cuda
