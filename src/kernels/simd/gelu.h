// GELU by its tanh formula (kernels/pointwise/pointwise.h), sixteen numbers at a time.
#pragma once

#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

inline constexpr float kSqrt2OverPi = 0.797884560802865f;
inline constexpr float kCubic = 0.044715f;

// (1 + tanh(u)) / 2 = 1 / (1 + 2^(-2 u log2 e)) for u = sqrt(2 / pi) (x + 0.044715 x^3).
struct Gate {
  Floats value;
  Floats rest;  // 1 - value, without the cancellation of that difference
  Floats x;     // cut to [-10, 10], beyond which the gate is 0 or 1 to 1e-37; NaN stays NaN
};

[[gnu::always_inline]] inline Gate gelu_gate(Floats x) {
  x = min(broadcast(10.0f), max(broadcast(-10.0f), x));
  constexpr float kMinus2Log2e = -2 * 1.44269504088896f;
  const Floats square = x * x;
  const Floats u = x * multiply_add(square, broadcast(kMinus2Log2e * kSqrt2OverPi * kCubic),
                                    broadcast(kMinus2Log2e * kSqrt2OverPi));
  const Floats one = broadcast(1.0f);
  const Floats power = exp2(u);
  const Floats value = one / (one + power);
  return {value, power * value, x};
}

// g + x g (1 - g) 2 u'(x)
[[gnu::always_inline]] inline Floats gelu_derivative(const Gate& g) {
  const Floats square = g.x * g.x;
  const Floats two_du =
      multiply_add(square, broadcast(6 * kSqrt2OverPi * kCubic), broadcast(2 * kSqrt2OverPi));
  const Floats slope = g.value * g.rest;
  return multiply_add(g.x * slope, two_du, g.value);
}

}  // namespace lra::kernels::LRA_ISA
