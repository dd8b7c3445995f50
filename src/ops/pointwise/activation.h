// Functions of one number: kernels/pointwise/activation.h.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// f(x), elementwise, of x's shape and dtype: float32, float64 or bfloat16. Differentiable; the same
// bits at any number of threads, which the library's sigmoid does not have; composed of the
// library's operators on other devices than the CPU.
Tensor sigmoid(const Tensor& x);
// 1 - sigmoid(x), without the cancellation of that difference.
Tensor closed_gate(const Tensor& x);
// log(1 + exp(x)); its slope is 1/2 at 0.
Tensor softplus(const Tensor& x);
// x + 1/2 for x >= 0, else sigmoid(x).
Tensor positive(const Tensor& x);
Tensor exp(const Tensor& x);
// sqrt(1 - exp(2 x)) for x <= 0, at least sqrt(2.5e-7), where its slope is 0.
Tensor fresh_share(const Tensor& x);

}  // namespace lra::ops
