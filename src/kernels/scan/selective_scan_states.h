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
// states, coefficients and their sums [states, planes, 16].
struct Scratch {
  Scratch(int64_t state_numbers, int64_t chunks, bool backward) {
    const int64_t vectors = state_numbers * kLanes;
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
  float *a, *bias, *h;  // a log2(e), and frequencies in turns
  float *slope = nullptr, *grad = nullptr, *grad_dt = nullptr, *kept = nullptr;
  float *r = nullptr, *of_a = nullptr, *of_bias = nullptr, *starts = nullptr;
};

// b and c of a chunk's rows, or shares of their gradients, in the order of time; imaginary parts
// `states` numbers behind real ones.
template <typename T>
struct StateRows {
  T *b, *c;
  int64_t step, states;

  template <int kPlanes>
  Complex<kPlanes> number(const T* row, int64_t n) const {
    const auto part = [](T x) { return broadcast(static_cast<float>(x)); };
    return {part(row[n]), kPlanes == 2 ? part(row[states + n]) : zeros()};
  }
};

// exp(dt a)
template <int kPlanes>
Complex<kPlanes> decay_by(Floats dt, const float* a) {
  const Floats size = exp2(dt * load(a));
  if constexpr (kPlanes == 1) return {size, zeros()};
  const Complex<2> turn = turned_by(dt * load(a + kLanes));
  return {size * turn.re, size * turn.im};
}

// Some states over the rows of a chunk. With kOutputs adds their part of y.
template <int kPlanes, int kStates, bool kOutputs, typename T>
void advance(const Scratch& s, StateRows<const T> rows, int64_t n, int64_t count) {
  using Numbers = Complex<kPlanes>;
  constexpr int64_t kNumber = kPlanes * kLanes;
  Floats a[kStates];
  Numbers bias[kStates], h[kStates];
#pragma GCC unroll 4
  for (int k = 0; k < kStates; ++k) {
    if (kPlanes == 1) a[k] = load(s.a + (n + k) * kNumber);
    bias[k] = Numbers::load_from(s.bias + (n + k) * kNumber);
    h[k] = Numbers::load_from(s.h + (n + k) * kNumber);
  }
  for (int64_t t = 0; t < count; ++t, rows.b += rows.step, rows.c += rows.step) {
    const Floats dt = load(s.dt + t * kLanes), u = dt * load(s.x + t * kLanes);
    Floats sum = kOutputs ? load(s.y + t * kLanes) : zeros();
#pragma GCC unroll 4
    for (int k = 0; k < kStates; ++k) {
      const Numbers b = rows.template number<kPlanes>(rows.b, n + k);
      const Floats input = (b.re + bias[k].re) * u;
      if constexpr (kPlanes == 1) {
        h[k].advance({exp2(dt * a[k]), zeros()}, input);
      } else {
        h[k].advance(decay_by<2>(dt, s.a + (n + k) * kNumber),
                     Numbers{input, (b.im + bias[k].im) * u});
      }
      if (kOutputs) sum = h[k].add_real(rows.template number<kPlanes>(rows.c, n + k), sum);
    }
    if (kOutputs) store(s.y + t * kLanes, sum);
  }
#pragma GCC unroll 4
  for (int k = 0; k < kStates; ++k) h[k].store_to(s.h + (n + k) * kNumber);
}

// Keeps exp(dt a) of each row and state, and its product with the state before.
template <int kPlanes, int kStates, typename T>
void keep_states(const Scratch& s, StateRows<const T> rows, const float* start, int64_t n,
                 int64_t count) {
  using Numbers = Complex<kPlanes>;
  constexpr int64_t kNumber = kPlanes * kLanes;
  Numbers h[kStates];
  for (int k = 0; k < kStates; ++k) h[k] = Numbers::load_from(start + (n + k) * kNumber);
  for (int64_t t = 0; t < count; ++t, rows.b += rows.step) {
    const Floats dt = load(s.dt + t * kLanes), u = dt * load(s.x + t * kLanes);
#pragma GCC unroll 4
    for (int k = 0; k < kStates; ++k) {
      const Numbers decay = decay_by<kPlanes>(dt, s.a + (n + k) * kNumber);
      float* const kept = s.kept + (t * kStates + k) * 2 * kNumber;
      decay.store_to(kept);
      h[k].advance(decay, zeros());
      h[k].store_to(kept + kNumber);
      const Numbers bias = Numbers::load_from(s.bias + (n + k) * kNumber);
      const Numbers b = rows.template number<kPlanes>(rows.b, n + k);
      h[k].add_scaled({b.re + bias.re, b.im + bias.im}, u);
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

// The shares of some states in a row's gradients, in registers.
template <int kPlanes, int kStates>
struct RowShares {
  Floats b[kPlanes][kStates], c[kPlanes][kStates];

  void write(float* to_b, float* to_c, int64_t states) const {
    for (int plane = 0; plane < kPlanes; ++plane) {
      store_shares(to_b + plane * states, b[plane]);
      store_shares(to_c + plane * states, c[plane]);
    }
  }
};

// Goes backward in time over the rows of a chunk, whose states are kept. Gradients of complex
// numbers are those of their parts, as a complex number.
template <int kPlanes, int kStates, typename T>
void states_back(const Scratch& s, StateRows<const T> rows, StateRows<float> shares, int64_t n,
                 int64_t count) {
  using Numbers = Complex<kPlanes>;
  constexpr int64_t kNumber = kPlanes * kLanes;
  constexpr float kTurn = 2 * std::numbers::pi_v<float>;
  Numbers r[kStates], of_a[kStates], of_bias[kStates];
  for (int k = 0; k < kStates; ++k) {
    r[k] = Numbers::load_from(s.r + (n + k) * kNumber);
    of_a[k] = of_bias[k] = {zeros(), zeros()};
  }
  for (int64_t t = count - 1; t >= 0; --t) {
    const T *const b = rows.b + t * rows.step + n, *const c = rows.c + t * rows.step + n;
    const Floats grad = load(s.grad + t * kLanes), x = load(s.x + t * kLanes);
    const Floats dt = load(s.dt + t * kLanes), u = dt * x;
    Floats inputs = zeros(), rates = zeros(), turns = zeros();
    RowShares<kPlanes, kStates> of;
#pragma GCC unroll 4
    for (int k = 0; k < kStates; ++k) {
      const float* const kept = s.kept + (t * kStates + k) * 2 * kNumber;
      const float* const a = s.a + (n + k) * kNumber;
      const Numbers decayed = Numbers::load_from(kept + kNumber), decay = Numbers::load_from(kept);
      const Numbers bias = Numbers::load_from(s.bias + (n + k) * kNumber);
      const Numbers b_k = rows.template number<kPlanes>(b, k),
                    c_k = rows.template number<kPlanes>(c, k);
      const Floats input = b_k.re + bias.re;
      r[k].re = multiply_add(grad, c_k.re, r[k].re);
      of.c[0][k] = grad * multiply_add(input, u, decayed.re);
      of.b[0][k] = r[k].re * u;
      inputs = multiply_add(r[k].re, input, inputs);
      Floats of_decay = r[k].re * decayed.re;
      if constexpr (kPlanes == 2) {
        const Floats input_im = b_k.im + bias.im;
        r[k].im = subtract_product(r[k].im, grad, c_k.im);
        of.c[1][k] = zeros() - grad * multiply_add(input_im, u, decayed.im);
        of.b[1][k] = r[k].im * u;
        inputs = multiply_add(r[k].im, input_im, inputs);
        of_decay = multiply_add(r[k].im, decayed.im, of_decay);
        const Floats of_turn = multiply_subtract(r[k].im, decayed.re, r[k].re * decayed.im);
        turns = multiply_add(of_turn, load(a + kLanes), turns);
        of_a[k].im = multiply_add(of_turn, dt, of_a[k].im);
        of_bias[k].im = of_bias[k].im + of.b[1][k];
      }
      of_bias[k].re = of_bias[k].re + of.b[0][k];
      rates = multiply_add(of_decay, load(a), rates);
      of_a[k].re = multiply_add(of_decay, dt, of_a[k].re);
      r[k].advance_conjugate(decay, zeros());
    }
    of.write(shares.b + t * shares.step + n, shares.c + t * shares.step + n, shares.states);
    store(s.y + t * kLanes, multiply_add(dt, inputs, load(s.y + t * kLanes)));
    Floats of_dt = multiply_add(x, inputs, rates * broadcast(std::numbers::ln2_v<float>));
    if (kPlanes == 2) of_dt = multiply_add(turns, broadcast(kTurn), of_dt);
    store(s.grad_dt + t * kLanes, load(s.grad_dt + t * kLanes) + of_dt);
  }
  const auto add_to = [&](float* to, int k, const Numbers& sum) {
    to += (n + k) * kNumber;
    store(to, load(to) + sum.re);
    if (kPlanes == 2) store(to + kLanes, load(to + kLanes) + sum.im);
  };
  for (int k = 0; k < kStates; ++k) {
    r[k].store_to(s.r + (n + k) * kNumber);
    add_to(s.of_a, k, of_a[k]);
    add_to(s.of_bias, k, of_bias[k]);
  }
}

}  // namespace lra::kernels::LRA_ISA
