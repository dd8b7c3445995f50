// bfloat16 activations with float parameters: the dtype of the activations decides the dtype of the
// computation, as defined in docs/numerics.md.
#pragma once

#include "base/processor.h"
#include "kernels/choice.h"
#include "ops/libtorch.h"

namespace lra::ops {

// The accumulator dtype: that of sums, softmax and logsumexp of values of this type.
inline at::ScalarType wide_type(at::ScalarType type) {
  return type == at::kBFloat16 ? at::kFloat : type;
}
inline at::ScalarType wide_type(const Tensor& t) { return wide_type(t.scalar_type()); }

// True if the CPU library's products of this type take longer than those of float: on processors
// without products of bfloat16, 10 to 100 times on AVX2 and 5 times with AVX-512, and twice as long
// on those with slow pairs alone (docs/numerics.md). They are computed in float instead.
inline bool has_slow_products(const Tensor& t) {
  return t.scalar_type() == at::kBFloat16 && t.device().is_cpu() &&
         !kernels::isa_available(kernels::Isa::kAmx) && !has_fast_pairs();
}

// A parameter, or any small tensor, in the dtype of the activations that it is combined with: its
// own, or float32 with bfloat16. Differentiable: its gradient comes back in the parameter's own
// dtype.
Tensor beside(const Tensor& parameter, const Tensor& activations);

// Rounds the array that a model's parameters are views of, at once. While it lives, `beside` gives
// views of that to code of this thread that records no gradients, operators with their own: on a
// GPU, rounding each parameter takes a launch. Does nothing on the CPU and for the array's own
// dtype.
class RoundedParameters {
 public:
  RoundedParameters(const Tensor& flat, at::ScalarType type);
  ~RoundedParameters();
  RoundedParameters(const RoundedParameters&) = delete;
  RoundedParameters& operator=(const RoundedParameters&) = delete;
};

}  // namespace lra::ops
