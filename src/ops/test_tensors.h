// Helpers of the tests of the torch rooms: seeded tensors, the dropout mask by its definition, and
// comparison of a function and its gradients with an oracle and with central differences.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "ops/libtorch.h"

namespace lra::ops {

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Uniform in [-1, 1); a function of the seed.
inline at::Tensor random_tensor(at::IntArrayRef shape, uint64_t seed,
                                at::ScalarType type = at::kDouble) {
  at::Tensor t = at::empty(shape, at::kDouble);
  RandomStream stream(seed);
  double* data = t.mutable_data_ptr<double>();
  for (int64_t i = 0; i < t.numel(); ++i) data[i] = 2 * stream.uniform() - 1;
  return t.to(type);
}

// A mask, uint8 [3, length], of all tokens, half of them, and none.
inline at::Tensor first_ones(int64_t length) {
  const at::Tensor lengths = at::tensor({length, length / 2, int64_t{0}});
  return at::arange(length).lt(lengths.unsqueeze(1)).to(at::kByte);
}

// Factors of elementwise dropout, from kernels/pointwise/pointwise.h: element n is in row n / 1024
// of plane 0. float64.
inline at::Tensor dropout_factors(at::IntArrayRef shape, double rate, uint64_t key) {
  at::Tensor t = at::empty(shape, at::kDouble);
  double* data = t.mutable_data_ptr<double>();
  for (int64_t n = 0; n < t.numel(); ++n) {
    const uint32_t value =
        dropout_value(key, 0, static_cast<uint32_t>(n / 1024), static_cast<uint32_t>(n % 1024));
    data[n] = value < dropout_threshold(rate) ? 0.0 : double{dropout_scale(rate)};
  }
  return t;
}

// Largest difference over the largest expected value; the plain difference where all expected
// values are 0. NaN when anything is.
inline double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  LRA_CHECK_EQ(actual.sizes(), expected.sizes());
  if (expected.numel() == 0) return 0;
  const at::Tensor a = actual.detach().to(at::kDouble), e = expected.detach().to(at::kDouble);
  const double size = e.abs().max().item<double>();
  const double difference = (a - e).abs().max().item<double>();
  return size == 0 ? difference : difference / size;
}

// A value, and the gradients of sum(weights * value) for fixed random weights. A gradient that does
// not exist is zeros.
struct Differentiated {
  at::Tensor value;
  std::vector<at::Tensor> gradients;
};

inline at::Tensor loss_weights(const at::Tensor& value) {
  return random_tensor(value.sizes(), 0xBEEF, value.scalar_type());
}

inline Differentiated differentiate(const TensorFunction& f, const std::vector<at::Tensor>& inputs,
                                    at::ScalarType type) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& t : inputs) leaves.push_back(t.to(type).clone().set_requires_grad(true));
  Differentiated result;
  result.value = f(leaves);
  result.gradients =
      torch::autograd::grad({result.value}, leaves, {loss_weights(result.value)}, false, false,
                            /*allow_unused=*/true);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!result.gradients[i].defined()) result.gradients[i] = at::zeros_like(leaves[i]);
  }
  return result;
}

// Relative to the largest value of each tensor. Terms of order one that cancel to a gradient below
// `cancelled` leave rounding errors that are not small against it: such are held to the absolute
// error of one that size.
struct Tolerance {
  double value = 1e-5, gradient = 1e-4, cancelled = 1e-2;
};

// f in `type` against the oracle in float64, values and the gradient of every input.
inline void expect_agrees(const TensorFunction& f, at::ScalarType type,
                          const TensorFunction& oracle, const std::vector<at::Tensor>& inputs,
                          const Tolerance& tolerance = {}) {
  const Differentiated actual = differentiate(f, inputs, type);
  const Differentiated expected = differentiate(oracle, inputs, at::kDouble);
  EXPECT_LE(relative_error(actual.value, expected.value), tolerance.value);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double size = expected.gradients[i].abs().max().item<double>();
    const double error = relative_error(actual.gradients[i], expected.gradients[i]);
    EXPECT_LE(error * std::min(1.0, size == 0 ? 1.0 : size / tolerance.cancelled),
              tolerance.gradient)
        << "gradient of input " << i;
  }
}

// The gradient of f in float64 along a few random directions against central differences of the
// fourth order: a norm of small numbers has third derivatives of a million.
inline void expect_gradient_is_slope(const TensorFunction& f,
                                     const std::vector<at::Tensor>& inputs) {
  constexpr double kStep = 1e-5, kTolerance = 1e-7;
  constexpr uint64_t kDirections = 3;
  const Differentiated exact = differentiate(f, inputs, at::kDouble);
  const auto loss = [&](double step, const std::vector<at::Tensor>& direction) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> moved;
    for (size_t i = 0; i < inputs.size(); ++i) moved.push_back(inputs[i] + step * direction[i]);
    const at::Tensor value = f(moved);
    return (value * loss_weights(value)).sum().item<double>();
  };
  for (uint64_t d = 0; d < kDirections; ++d) {
    std::vector<at::Tensor> direction;
    double slope = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      direction.push_back(random_tensor(inputs[i].sizes(), 1000 * d + i));
      slope += (exact.gradients[i] * direction[i]).sum().item<double>();
    }
    const auto difference = [&](double step) {
      return loss(step, direction) - loss(-step, direction);
    };
    const double measured = (8 * difference(kStep / 2) - difference(kStep)) / (6 * kStep);
    EXPECT_NEAR(slope, measured, kTolerance * std::max(1.0, std::abs(measured)));
  }
}

// The results of an operator's implementation under `key`, whatever device its inputs are on: with
// CompositeExplicitAutograd, of the composed version that devices without a kernel take.
inline std::vector<at::Tensor> call_under(c10::DispatchKey key, const char* name,
                                          std::vector<c10::IValue> stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxedForDispatchKey(key, stack);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) results.push_back(value.toTensor());
  return results;
}

}  // namespace lra::ops
