// Layer normalisation over the last axis, with a backward pass whose bits do not depend on the
// number of threads: the library adds the gradients of scale and shift up in one part per thread.
#pragma once

#include <torch/torch.h>

namespace lra::ops {

// x [..., D], weight [D], bias [D] -> [..., D]: (x - mean) / sqrt(variance + eps) * weight + bias.
// Beside bfloat16 x, weight and bias are float32, and so are the statistics. Differentiable once.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps);

}  // namespace lra::ops
