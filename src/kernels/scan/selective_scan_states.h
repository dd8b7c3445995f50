// The inner loops of selective_scan_simd.cpp: some states of sixteen channels over the rows of a
// chunk, with everything that changes in registers.
#pragma once

#include <numbers>

#include "kernels/aligned_buffer.h"
#include "kernels/scan/complex_vectors.h"
#include "kernels/scan/selective_scan.h"
#include "kernels/simd/sigmoid.h"

namespace lra::kernels::LRA_ISA {

// States that an inner loop advances.
inline constexpr int kForwardStates = kIsa == Isa::kAvx512 ? 4 : 2;
inline constexpr int kBackwardStates = kForwardStates;
inline constexpr int64_t kChunkFloats = kScanChunk * kLanes;

// Memory of one task, of which a thread has one at a time. Rows of a chunk [kScanChunk, 16];
// states, coefficients and their sums [states, 16].
struct Scratch {
  Scratch(int64_t states, int64_t chunks, bool backward) {
    const int64_t vectors = states * kLanes;
    thread_local AlignedBuffer space;
    float* next = space.reserve(
        3 * kChunkFloats + 3 * vectors +
        backward * ((3 + 2 * kBackwardStates) * kChunkFloats + (3 + chunks) * vectors));
    const auto take = [&](int64_t count) { return next += count, next - count; };
    x = take(kChunkFloats);
    dt = take(kChunkFloats);
    y = take(kChunkFloats);
    a = take(vectors);
    bias = take(vectors);
    h = take(vectors);
    if (!backward) return;
    slope = take(kChunkFloats);
    grad = take(kChunkFloats);
    grad_dt = take(kChunkFloats);
    kept = take(2 * kBackwardStates * kChunkFloats);
    r = take(vectors);
    of_a = take(vectors);
    of_bias = take(vectors);
    starts = take(chunks * vectors);
  }
  float *x, *dt, *y;    // in the backward pass y has the gradient of x
  float *a, *bias, *h;  // a log2(e)
  float *slope = nullptr, *grad = nullptr, *grad_dt = nullptr, *kept = nullptr;
  float *r = nullptr, *of_a = nullptr, *of_bias = nullptr, *starts = nullptr;
};

// b and c of a chunk's rows, or shares of their gradients, in the order of time.
template <typename T>
struct StateRows {
  T *b, *c;
  int64_t step;
};

// Some states over the rows of a chunk. With kOutputs adds their part of y.
template <int kStates, bool kOutputs, typename T>
void advance(const Scratch& s, StateRows<const T> rows, int64_t n, int64_t count) {
  Floats a[kStates], bias[kStates], h[kStates];
#pragma GCC unroll 4
  for (int k = 0; k < kStates; ++k) {
    a[k] = load(s.a + (n + k) * kLanes);
    bias[k] = load(s.bias + (n + k) * kLanes);
    h[k] = load(s.h + (n + k) * kLanes);
  }
  for (int64_t t = 0; t < count; ++t, rows.b += rows.step, rows.c += rows.step) {
    const Floats dt = load(s.dt + t * kLanes), u = dt * load(s.x + t * kLanes);
    Floats sum = kOutputs ? load(s.y + t * kLanes) : zeros();
#pragma GCC unroll 4
    for (int k = 0; k < kStates; ++k) {
      const Floats input = (broadcast(static_cast<float>(rows.b[n + k])) + bias[k]) * u;
      h[k] = multiply_add(exp2(dt * a[k]), h[k], input);
      if (kOutputs) sum = multiply_add(broadcast(static_cast<float>(rows.c[n + k])), h[k], sum);
    }
    if (kOutputs) store(s.y + t * kLanes, sum);
  }
#pragma GCC unroll 4
  for (int k = 0; k < kStates; ++k) store(s.h + (n + k) * kLanes, h[k]);
}

// Keeps exp(dt a) of each row and state, and its product with the state before.
template <int kStates, typename T>
void keep_states(const Scratch& s, StateRows<const T> rows, const float* start, int64_t n,
                 int64_t count) {
  Floats h[kStates];
  for (int k = 0; k < kStates; ++k) h[k] = load(start + (n + k) * kLanes);
  for (int64_t t = 0; t < count; ++t, rows.b += rows.step) {
    const Floats dt = load(s.dt + t * kLanes), u = dt * load(s.x + t * kLanes);
#pragma GCC unroll 4
    for (int k = 0; k < kStates; ++k) {
      const Floats decay = exp2(dt * load(s.a + (n + k) * kLanes)), decayed = decay * h[k];
      float* const kept = s.kept + (t * kStates + k) * 2 * kLanes;
      store(kept, decay);
      store(kept + kLanes, decayed);
      const Floats bias = load(s.bias + (n + k) * kLanes);
      h[k] = multiply_add(broadcast(static_cast<float>(rows.b[n + k])) + bias, u, decayed);
    }
  }
}

template <int kStates>
void store_shares(float* to, const Floats (&of)[kStates]) {
  if constexpr (kStates == 4) {
    store_sums(to, of[0], of[1], of[2], of[3]);
  } else {
    for (int k = 0; k < kStates; ++k) to[k] = sum_of_lanes(of[k]);
  }
}

// Goes backward in time over the rows of a chunk, whose states are kept.
template <int kStates, typename T>
void states_back(const Scratch& s, StateRows<const T> rows, StateRows<float> shares, int64_t n,
                 int64_t count) {
  Floats r[kStates], of_a[kStates], of_bias[kStates];
  for (int k = 0; k < kStates; ++k) {
    r[k] = load(s.r + (n + k) * kLanes);
    of_a[k] = of_bias[k] = zeros();
  }
  for (int64_t t = count - 1; t >= 0; --t) {
    const T *const b = rows.b + t * rows.step + n, *const c = rows.c + t * rows.step + n;
    const Floats grad = load(s.grad + t * kLanes), x = load(s.x + t * kLanes);
    const Floats dt = load(s.dt + t * kLanes), u = dt * x;
    Floats inputs = zeros(), rates = zeros(), of_b[kStates], of_c[kStates];
#pragma GCC unroll 4
    for (int k = 0; k < kStates; ++k) {
      const float* const kept = s.kept + (t * kStates + k) * 2 * kLanes;
      const Floats decayed = load(kept + kLanes);
      const Floats input = broadcast(static_cast<float>(b[k])) + load(s.bias + (n + k) * kLanes);
      r[k] = multiply_add(grad, broadcast(static_cast<float>(c[k])), r[k]);
      of_c[k] = grad * multiply_add(input, u, decayed);
      of_b[k] = r[k] * u;
      of_bias[k] = of_bias[k] + of_b[k];
      inputs = multiply_add(r[k], input, inputs);
      const Floats of_decay = r[k] * decayed;
      rates = multiply_add(of_decay, load(s.a + (n + k) * kLanes), rates);
      of_a[k] = multiply_add(of_decay, dt, of_a[k]);
      r[k] = r[k] * load(kept);
    }
    store_shares(shares.b + t * shares.step + n, of_b);
    store_shares(shares.c + t * shares.step + n, of_c);
    store(s.y + t * kLanes, multiply_add(dt, inputs, load(s.y + t * kLanes)));
    const Floats of_dt = multiply_add(x, inputs, rates * broadcast(std::numbers::ln2_v<float>));
    store(s.grad_dt + t * kLanes, load(s.grad_dt + t * kLanes) + of_dt);
  }
  const auto add_to = [&](float* to, int k, Floats sum) {
    to += (n + k) * kLanes;
    store(to, load(to) + sum);
  };
  for (int k = 0; k < kStates; ++k) {
    store(s.r + (n + k) * kLanes, r[k]);
    add_to(s.of_a, k, of_a[k]);
    add_to(s.of_bias, k, of_bias[k]);
  }
}

}  // namespace lra::kernels::LRA_ISA
