// Elementwise passes as in a textbook: one element at a time, its own dropout decision each.
#include <cmath>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/pointwise_instances.h"

namespace lra::kernels::ref {
namespace {

// The dropout factor of element n: 0 or 1 / (1 - rate).
template <typename T>
T dropout_factor(const Dropout& dropout, int64_t n) {
  const uint32_t threshold = dropout_threshold(dropout.rate);
  if (threshold == 0) return 1;
  const uint32_t value = dropout_value(
      dropout.key, 0, static_cast<uint32_t>(dropout.first_row + n / kDropoutRowLength),
      static_cast<uint32_t>(n % kDropoutRowLength));
  return value < threshold ? T{0} : static_cast<T>(dropout_scale(dropout.rate));
}

constexpr double kSqrt2OverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;

template <typename T>
T gelu(T x) {
  const T u = static_cast<T>(kSqrt2OverPi) * (x + static_cast<T>(kCubic) * x * x * x);
  return static_cast<T>(0.5) * x * (1 + std::tanh(u));
}

template <typename T>
T gelu_derivative(T x) {
  // 0 or 1 beyond; the cube of a large x would overflow. NaN stays NaN.
  x = x < -10 ? T{-10} : x > 10 ? T{10} : x;
  const T u = static_cast<T>(kSqrt2OverPi) * (x + static_cast<T>(kCubic) * x * x * x);
  const T du = static_cast<T>(kSqrt2OverPi) * (1 + 3 * static_cast<T>(kCubic) * x * x);
  const T tanh_u = std::tanh(u);
  return static_cast<T>(0.5) * (1 + tanh_u + x * (1 - tanh_u * tanh_u) * du);
}

template <typename F>
void for_each_element(int64_t count, const Dropout& dropout, const F& body) {
  check_dropout(dropout);
  parallel_ranges(count, kDropoutRowLength, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) body(n);
  });
}

}  // namespace

template <typename T>
void gelu_dropout(int64_t count, const T* x, T* y, const Dropout& dropout) {
  using W = Wide<T>;
  for_each_element(count, dropout, [&](int64_t n) {
    y[n] = dropout_factor<W>(dropout, n) * gelu(static_cast<W>(x[n]));
  });
}

template <typename T>
void gelu_dropout_backward(int64_t count, const T* x, const T* dy, T* dx, T* y,
                           const Dropout& dropout) {
  using W = Wide<T>;
  for_each_element(count, dropout, [&](int64_t n) {
    const W factor = dropout_factor<W>(dropout, n), value = static_cast<W>(x[n]);
    if (y) y[n] = factor * gelu(value);
    dx[n] = factor * static_cast<W>(dy[n]) * gelu_derivative(value);
  });
}

template <typename T>
void dropout_add(int64_t count, const T* residual, const T* x, T* y, const Dropout& dropout) {
  using W = Wide<T>;
  for_each_element(count, dropout, [&](int64_t n) {
    y[n] = static_cast<W>(residual[n]) + dropout_factor<W>(dropout, n) * static_cast<W>(x[n]);
  });
}

template <typename T>
void apply_dropout(int64_t count, const T* x, T* y, const Dropout& dropout) {
  using W = Wide<T>;
  for_each_element(count, dropout,
                   [&](int64_t n) { y[n] = dropout_factor<W>(dropout, n) * static_cast<W>(x[n]); });
}

LRA_INSTANTIATE_POINTWISE(float)
LRA_INSTANTIATE_POINTWISE(Bf16)
LRA_INSTANTIATE_POINTWISE(double)

}  // namespace lra::kernels::ref
