// y = x W^T (+ b), as a layer. Weights are [out, in] as in PyTorch.
#pragma once

#include "layers/layer.h"
#include "ops/linear.h"

namespace lra::layers {

enum class LinearWeights { kXavier, kLecun };

class Linear : public Layer {
 public:
  // The bias is N(0, bias_deviation^2).
  Linear(const Initializer& init, int64_t out, int64_t in,
         LinearWeights weights = LinearWeights::kXavier, double bias_deviation = 0) {
    const Initializer of_weight = init.of("weight");
    weight =
        register_parameter("weight", weights == LinearWeights::kXavier ? of_weight.xavier(out, in)
                                                                       : of_weight.lecun(out, in));
    bias = register_parameter("bias", bias_deviation > 0
                                          ? init.of("bias").normal({out}, bias_deviation)
                                          : init.zeros({out}));
  }
  // x [..., in] -> [..., out]
  at::Tensor forward(const at::Tensor& x) const { return ops::linear(x, weight, bias); }
  at::Tensor of_stream(at::Tensor& x) const { return ops::linear_of_stream(x, weight, bias); }
  at::Tensor weight, bias;
};

}  // namespace lra::layers
