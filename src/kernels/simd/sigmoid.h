#pragma once

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

}  // namespace lra::kernels::LRA_ISA
