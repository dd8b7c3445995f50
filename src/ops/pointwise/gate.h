// Gated linear units (Dauphin et al. 2017, arXiv:1612.08083), and gates by SiLU.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// a * sigmoid(b), where x [..., 2 D] holds a and then b: [..., D]. float32, float64 or bfloat16;
// differentiable, with a packed gradient; the same bits at any number of threads.
at::Tensor glu(const at::Tensor& x);

// value * sigmoid(gate), both of one shape. As glu.
at::Tensor gate(const at::Tensor& value, const at::Tensor& gate);

// factor * x * sigmoid(x), both of one shape; without `factor`, SiLU(x). As glu.
at::Tensor silu(const at::Tensor& x, const at::Tensor& factor = {});

}  // namespace lra::ops
