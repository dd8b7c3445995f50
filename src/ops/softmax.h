// Softmax over the last axis. The library's backward pass gives other bits at other numbers of
// threads (docs/numerics.md); its forward pass does not.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// x [..., N] -> the same shape, float32 for bfloat16. Differentiable once.
Tensor softmax(const Tensor& x);

}  // namespace lra::ops
