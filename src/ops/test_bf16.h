// Comparison of bfloat16 activations with an oracle in float64, in the norm.
#pragma once

#include <algorithm>
#include <vector>

#include "ops/test_tensors.h"

namespace lra::ops {

// Norms of errors over norms of expected values.
inline double normwise_error(const at::Tensor& actual, const at::Tensor& expected, double least) {
  const double size = std::max(expected.norm().item<double>(), least);
  const double difference = (actual.detach().to(at::kDouble) - expected).norm().item<double>();
  return size == 0 ? difference : difference / size;
}

struct NormwiseBounds {
  double value = 0x1p-7, gradient = 0x1p-6;
  // A gradient below this share of the largest one is held to that size: the terms that canceled
  // were rounded. (One key: the gradient of its query is 0, its terms are not.)
  double cancelled = 0.25;
};

// f of bfloat16 activations, the first inputs, and float32 parameters, the others, against the
// oracle in float64 on the same rounded inputs: normwise errors of the value, which must be
// bfloat16, and of the gradient of every input, which must have the input's type.
inline void expect_agrees_in_bf16(const TensorFunction& f, const TensorFunction& oracle,
                                  const std::vector<at::Tensor>& inputs, size_t num_activations,
                                  const NormwiseBounds& bounds = {}) {
  std::vector<at::Tensor> leaves, exact;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto type = i < num_activations ? at::kBFloat16 : at::kFloat;
    leaves.push_back(inputs[i].to(type).clone().set_requires_grad(true));
    exact.push_back(leaves[i].detach().to(at::kDouble).set_requires_grad(true));
  }
  const at::Tensor value = f(leaves), expected = oracle(exact);
  EXPECT_EQ(value.scalar_type(), at::kBFloat16);
  EXPECT_LE(normwise_error(value, expected.detach(), 0), bounds.value);
  const at::Tensor weights = loss_weights(value);
  const auto gradients = torch::autograd::grad({value}, leaves, {weights}, false, false, true);
  const auto wanted =
      torch::autograd::grad({expected}, exact, {weights.to(at::kDouble)}, false, false, true);
  double largest = 0;
  for (const at::Tensor& t : wanted) {
    if (t.defined()) largest = std::max(largest, t.norm().item<double>());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Inputs that take no part have no gradient, or zeros.
    const at::Tensor got = gradients[i].defined() ? gradients[i] : at::zeros_like(leaves[i]);
    const at::Tensor want = wanted[i].defined() ? wanted[i] : at::zeros_like(exact[i]);
    EXPECT_EQ(got.scalar_type(), leaves[i].scalar_type());
    EXPECT_LE(normwise_error(got, want, bounds.cancelled * largest), bounds.gradient)
        << "gradient of input " << i;
  }
}

}  // namespace lra::ops
