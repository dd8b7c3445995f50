// The root mean square norm (Zhang and Sennrich 2019, arXiv:1910.07467) over the last axis, and the
// layer norm without a shift: kernels/pointwise/layer_norm.h.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// x / sqrt(mean of squares + eps) * weight, x [..., W] with weight [W], or [..., G, W] with weight
// [G, W]. `centered` takes the mean of each row away first. With bfloat16 x, weight is float32, and
// so are the statistics. Differentiable; the same bits at any number of threads; composed of the
// library's operators on other devices than the CPU.
at::Tensor row_norm(const at::Tensor& x, const at::Tensor& weight, double eps,
                    bool centered = false);

}  // namespace lra::ops
