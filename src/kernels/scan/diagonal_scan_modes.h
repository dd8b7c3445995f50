// The inner loops of diagonal_scan_simd.cpp: a few modes of sixteen channels over some rows, with
// everything that changes in registers.
#pragma once

#include "kernels/scan/complex_vectors.h"
#include "kernels/scan/diagonal_scan.h"

namespace lra::kernels::LRA_ISA {

// Pairs of channels, one for each mode from a group's first on.
struct Coefficients {
  const float *a, *c;
};

// Rows of one direction, in the order of its time: `x` and `read`, where the state after x counts,
// each `step` floats behind the one before.
struct Rows {
  const float* x;
  float* read;
  int64_t step, count;
};

template <int kPlanes, int kModes>
inline void scan_rows(Rows rows, const Coefficients& p, float* states) {
  using C = Complex<kPlanes>;
  C a[kModes], c[kModes], s[kModes];
#pragma GCC unroll 4
  for (int n = 0; n < kModes; ++n) {
    a[n] = C::load_from(p.a + n * kPair);
    c[n] = C::load_from(p.c + n * kPair);
    s[n] = C::load_from(states + n * kPair);
  }
  for (int64_t t = 0; t < rows.count; ++t, rows.x += rows.step, rows.read += rows.step) {
    const Floats x = load(rows.x);
    Floats sum = load(rows.read);
#pragma GCC unroll 4
    for (int n = 0; n < kModes; ++n) {
      s[n].advance(a[n], x);
      sum = s[n].add_real(c[n], sum);
    }
    store(rows.read, sum);
  }
#pragma GCC unroll 4
  for (int n = 0; n < kModes; ++n) s[n].store_to(states + n * kPair);
}

// Only the states; with kKeep those before each row go to `before`, [count, kModes] pairs.
template <int kPlanes, int kModes, bool kKeep>
void scan_states(Rows rows, const float* coefficients, float* states, float* before) {
  using C = Complex<kPlanes>;
  C a[kModes], s[kModes];
#pragma GCC unroll 4
  for (int n = 0; n < kModes; ++n) {
    a[n] = C::load_from(coefficients + n * kPair);
    s[n] = C::load_from(states + n * kPair);
  }
  for (int64_t t = 0; t < rows.count; ++t, rows.x += rows.step) {
    const Floats x = load(rows.x);
#pragma GCC unroll 4
    for (int n = 0; n < kModes; ++n) {
      if constexpr (kKeep) s[n].store_to(before + (t * kModes + n) * kPair);
      s[n].advance(a[n], x);
    }
  }
  if constexpr (kKeep) return;
#pragma GCC unroll 4
  for (int n = 0; n < kModes; ++n) s[n].store_to(states + n * kPair);
}

// Sums over time for the gradients of each mode: x r, then r conj(s before).
struct GradientState {
  float *r, *of_c, *products;
};

// Goes backward in time over the rows, whose pointers start at the last one: `read` holds
// gradients.
template <int kPlanes, int kModes>
inline void scan_back(Rows rows, const Coefficients& p, const float* before, float* grad_x,
                      const GradientState& state) {
  using C = Complex<kPlanes>;
  C a[kModes], c[kModes], r[kModes], of_c[kModes], products[kModes];
#pragma GCC unroll 4
  for (int n = 0; n < kModes; ++n) {
    a[n] = C::load_from(p.a + n * kPair);
    c[n] = C::load_from(p.c + n * kPair);
    r[n] = C::load_from(state.r + n * kPair);
    of_c[n] = products[n] = {zeros(), zeros()};
  }
  for (int64_t t = rows.count - 1; t >= 0; --t) {
    const Floats x = load(rows.x), grad = load(rows.read);
    Floats sum = load(grad_x);
#pragma GCC unroll 4
    for (int n = 0; n < kModes; ++n) {
      r[n].advance_conjugate(a[n], grad);
      sum = r[n].add_real_conjugate(c[n], sum);
      of_c[n].add_scaled(r[n], x);
      products[n].add_product_conjugate(r[n], C::load_from(before + (t * kModes + n) * kPair));
    }
    store(grad_x, sum);
    rows.x -= rows.step;
    rows.read -= rows.step;
    grad_x -= rows.step;
  }
  const auto add_to = [](float* to, const C& sum) {
    const C before = C::load_from(to);
    C{before.re + sum.re, before.im + sum.im}.store_to(to);
  };
#pragma GCC unroll 4
  for (int n = 0; n < kModes; ++n) {
    r[n].store_to(state.r + n * kPair);
    add_to(state.of_c + n * kPair, of_c[n]);
    add_to(state.products + n * kPair, products[n]);
  }
}

}  // namespace lra::kernels::LRA_ISA
