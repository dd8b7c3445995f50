#include "ops/feed_forward.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr uint64_t kKey = 77;

TensorFunction ours(double rate) {
  return [rate](const std::vector<Tensor>& in) {
    return feed_forward(in[0], in[1], in[2], in[3], in[4], rate, kKey);
  };
}

TensorFunction composed(double rate) {
  return [rate](const std::vector<Tensor>& in) {
    Tensor hidden = at::gelu(at::linear(in[0], in[1], in[2]), "tanh");
    hidden = hidden * dropout_factors(hidden.sizes(), rate, kKey);
    return at::linear(hidden, in[3], in[4]);
  };
}

// x [batch, length, 12], output width 12.
std::vector<Tensor> feed_forward_inputs(int64_t batch, int64_t length, int64_t hidden = 40) {
  return {random_tensor({batch, length, 12}, 1), random_tensor({hidden, 12}, 2),
          random_tensor({hidden}, 3), random_tensor({12, hidden}, 4), random_tensor({12}, 5)};
}

TEST(FeedForward, AgreesWithTheComposition) {
  for (const int64_t length : {1, 7, 64})
    expect_agrees(ours(0), at::kFloat, composed(0), feed_forward_inputs(3, length));
}

TEST(FeedForward, DropsByTheCounterInBothPasses) {
  for (const double rate : {0.1, 0.5}) {
    expect_agrees(ours(rate), at::kFloat, composed(rate), feed_forward_inputs(3, 37));
  }
}

// More rows than are computed at a time, and a rest.
TEST(FeedForward, ComputesRowsInParts) {
  for (const double rate : {0.0, 0.25}) {
    expect_agrees(ours(rate), at::kFloat, composed(rate), feed_forward_inputs(3, 1403));
  }
  expect_agrees_in_bf16(ours(0.25), composed(0.25), feed_forward_inputs(2, 2050), 1);
  expect_agrees(ours(0.25), at::kFloat, composed(0.25), feed_forward_inputs(1, 4500, 512));
}

std::vector<Tensor> with_norm(int64_t batch, int64_t length) {
  auto in = feed_forward_inputs(batch, length);
  in.push_back(random_tensor({12}, 6));
  in.push_back(random_tensor({12}, 7));
  return in;
}

Tensor ours_normed(const std::vector<Tensor>& in) {
  return feed_forward(in[0], in[1], in[2], in[3], in[4], 0.25, kKey, in[5], in[6]);
}

TEST(FeedForward, BeginsWithTheLayerNorm) {
  const TensorFunction normed_first = [](const std::vector<Tensor>& in) {
    return composed(0.25)(
        {at::layer_norm(in[0], {12}, in[5], in[6], 1e-6), in[1], in[2], in[3], in[4]});
  };
  for (const int64_t length : {5, 1403}) {
    expect_agrees(ours_normed, at::kFloat, normed_first, with_norm(3, length));
    expect_agrees_in_bf16(ours_normed, normed_first, with_norm(3, length), 1);
  }
  expect_gradient_is_slope(ours_normed, with_norm(2, 5));
}

constexpr uint64_t kResidualKey = 78;

Tensor ours_around(const std::vector<Tensor>& in) {
  const bool has_norm = in.size() > 5;
  return feed_forward(in[0], in[1], in[2], in[3], in[4], 0.25, kKey, has_norm ? in[5] : Tensor(),
                      has_norm ? in[6] : Tensor(), kResidualKey);
}

Tensor composed_around(const std::vector<Tensor>& in) {
  const bool has_norm = in.size() > 5;
  const Tensor x = has_norm ? at::layer_norm(in[0], {12}, in[5], in[6], 1e-6) : in[0];
  const Tensor y = composed(0.25)({x, in[1], in[2], in[3], in[4]});
  return in[0] + y * dropout_factors(y.sizes(), 0.25, kResidualKey);
}

TEST(FeedForward, AddsTheResidual) {
  for (const int64_t length : {5, 1403}) {
    for (const auto& in : {with_norm(3, length), feed_forward_inputs(3, length)}) {
      expect_agrees(ours_around, at::kFloat, composed_around, in);
      expect_agrees_in_bf16(ours_around, composed_around, in, 1);
    }
  }
  expect_gradient_is_slope(ours_around, with_norm(2, 5));
  expect_gradient_is_slope(ours_around, feed_forward_inputs(2, 5));
}

TEST(FeedForward, GivesTheSameBitsAtAnyNumberOfThreads) {
  std::vector<Tensor> in;
  for (const Tensor& t : with_norm(1, 4500)) in.push_back(t.to(at::kFloat).set_requires_grad(true));
  expect_same_bits_at_any_number_of_threads([&] {
    const Tensor y = ours_around(in);
    auto results = torch::autograd::grad({y}, in, {loss_weights(y)});
    results.push_back(y.detach());
    return results;
  });
}

TEST(FeedForward, AgreesWithTheCompositionInBf16) {
  for (const double rate : {0.0, 0.25}) {
    expect_agrees_in_bf16(ours(rate), composed(rate), feed_forward_inputs(3, 37), 1);
  }
}

TEST(FeedForward, GradientIsTheSlope) {
  expect_gradient_is_slope(ours(0), feed_forward_inputs(2, 5));
  expect_gradient_is_slope(ours(0.25), feed_forward_inputs(2, 5));
}

TEST(FeedForward, WithoutGradientsGivesTheSameValues) {
  std::vector<Tensor> in;
  for (const Tensor& t : feed_forward_inputs(2, 9)) in.push_back(t.to(at::kFloat));
  for (const double rate : {0.0, 0.25}) {
    const Tensor with_gradients = differentiate(ours(rate), in, at::kFloat).value;
    const at::NoGradGuard no_grad;
    EXPECT_LE(relative_error(ours(rate)(in), with_gradients), 1e-6);
  }
}

TEST(FeedForward, TrainsItsWeightsUnderAFixedInput) {
  std::vector<Tensor> in = feed_forward_inputs(2, 5);
  for (size_t i = 1; i < in.size(); ++i) in[i].set_requires_grad(true);
  ours(0.25)(in).sum().backward();
  EXPECT_FALSE(in[0].grad().defined());
  for (size_t i = 1; i < in.size(); ++i) EXPECT_GT(in[i].grad().abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace lra::ops
