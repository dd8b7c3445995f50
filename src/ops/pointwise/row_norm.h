// The root mean square norm (Zhang and Sennrich 2019, arXiv:1910.07467) over the last axis, and the
// layer norm without a shift: kernels/pointwise/layer_norm.h.
#pragma once

#include <utility>

#include "ops/libtorch.h"

namespace lra::ops {

// x / sqrt(mean of squares + eps) * weight, x [..., W] with weight [W], or [..., G, W] with weight
// [G, W]. `centered` takes the mean of each row away first. With bfloat16 x, weight is float32, and
// so are the statistics. Differentiable; the same bits at any number of threads; composed of the
// library's operators on devices without a kernel for it.
Tensor row_norm(const Tensor& x, const Tensor& weight, double eps, bool centered = false);

// The same, not centered, and x (ops/pointwise/layer_norm.h).
std::pair<Tensor, Tensor> row_norm_of_stream(const Tensor& x, const Tensor& weight, double eps);

// Rows of x [..., W] divided by their lengths: x / sqrt(sum of squares + kUnitEps). On the CPU,
// where lengths are rounded to the type of x, composed of the library's operators; a device may
// take row_norm() instead.
inline constexpr double kUnitEps = 1e-12;
Tensor unit_rows(const Tensor& x);

// CheckFailure unless these are arguments of torch.ops.lra.row_norm, on any device.
void check_row_norm(const Tensor& x, const Tensor& weight);

}  // namespace lra::ops
