// Layer normalization over the last axis: kernels/pointwise/layer_norm.h. Its bits do not depend on
// the number of threads: the library adds the gradients of scale and shift up in one part per
// thread.
#pragma once

#include <utility>

#include "ops/libtorch.h"

namespace lra::ops {

// x [..., D], weight [D], bias [D] -> [..., D]: (x - mean) / sqrt(variance + eps) * weight + bias.
// With bfloat16 x, weight and bias are float32, and so are the statistics.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);

// The same, and x: the stream that a block adds to. What is computed from both may take x from
// here, so that the gradients of the two are added in the backward pass of the norm.
std::pair<Tensor, Tensor> layer_norm_of_stream(const Tensor& x, const Tensor& weight,
                                               const Tensor& bias, double eps);

// The two passes on their own, without autograd, for operators that begin with a norm. Statistics
// [..., 1], float32 for bfloat16; x contiguous for the backward pass, whose gradient of x comes
// with `beside` added, of the same shape, unless that is undefined.
struct LayerNormValues {
  Tensor y, mean, rstd;
};
LayerNormValues layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   double eps);
struct LayerNormGrads {
  Tensor x, weight, bias;
};
LayerNormGrads layer_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& weight,
                                   const Tensor& beside = {});

}  // namespace lra::ops
