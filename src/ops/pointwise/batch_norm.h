// Batch normalization over the valid positions of a batch: kernels/pointwise/batch_norm.h. Its bits
// do not depend on the number of threads.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// Statistics of the valid positions: their number [], int64, and mean and biased variance [D].
// Without gradients. `stream` is x (ops/pointwise/layer_norm.h).
struct BatchNormValues {
  Tensor y, count, mean, variance, stream;
};

// x [..., D], mask uint8 [...] of valid positions or undefined, weight and bias [D] -> y [..., D]:
// (x - mean) / sqrt(variance + eps) * weight + bias, and 0 where the mask is 0. With bfloat16 x,
// weight, bias and the statistics are float32.
BatchNormValues batch_norm(const Tensor& x, const Tensor& mask, const Tensor& weight,
                           const Tensor& bias, double eps);

// CheckFailure unless these are arguments of torch.ops.lra.batch_norm, on any device.
void check_batch_norm(const Tensor& x, const MaybeTensor& mask, const Tensor& weight,
                      const Tensor& bias);

}  // namespace lra::ops
