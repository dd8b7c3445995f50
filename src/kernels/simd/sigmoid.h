// The sigmoid and its integral, of vectors.
#pragma once

#include <numbers>

#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

// sigmoid(x), and 1 - sigmoid(x) without the cancellation of that difference. Beyond 87 a gate is
// open or closed to 1e-37; NaN stays NaN.
struct Sigmoid {
  [[gnu::always_inline]] explicit Sigmoid(Floats x) {
    x = min(broadcast(87.0f), max(broadcast(-87.0f), x));
    const Floats power = exp2(x * broadcast(-1.44269504088896f)), one = broadcast(1.0f);
    open = one / (one + power);
    closed = power * open;
  }
  Floats open, closed;
};

// log(1 + exp(x)) and its slope 1 / (1 + exp(-x)), relative error 3e-7 for x >= 0 and below |x|
// 6e-8 more, as exp(x) has. With y = exp(-|x|), log(1 + y) is 2 artanh(s), s = y / (2 + y) <= 1/3,
// whose series to s^15 leaves 2e-9.
struct Softplus {
  [[gnu::always_inline]] explicit Softplus(Floats x) {
    const Floats one = broadcast(1.0f), two = broadcast(2.0f);
    const Floats y = exp2(abs(x) * broadcast(-std::numbers::log2e_v<float>));
    const Floats s = y / (two + y), z = s * s;
    Floats series = broadcast(1.0f / 15);
    for (const float odd : {13.0f, 11.0f, 9.0f, 7.0f, 5.0f, 3.0f, 1.0f}) {
      series = multiply_add(series, z, broadcast(1.0f / odd));
    }
    value = multiply_add(s + s, series, max(x, zeros()));
    slope = select(greater(x, zeros()), one, y) / (one + y);
  }
  Floats value, slope;
};

}  // namespace lra::kernels::LRA_ISA
