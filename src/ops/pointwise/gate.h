// Gated linear units (Dauphin et al. 2017, arXiv:1612.08083), and gates by SiLU.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// a * sigmoid(b), where x [..., 2 D] holds a and then b: [..., D]. float32, float64 or bfloat16;
// differentiable, with a packed gradient; the same bits at any number of threads.
Tensor glu(const Tensor& x);

// value * sigmoid(gate), both of one shape. As glu.
Tensor gate(const Tensor& value, const Tensor& gate);

// factor * x * sigmoid(x), both of one shape; without `factor`, SiLU(x). As glu.
Tensor silu(const Tensor& x, const Tensor& factor = {});

}  // namespace lra::ops
