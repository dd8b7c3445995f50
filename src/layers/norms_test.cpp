// Norms against their definitions in float64, with gradients, and what batch norm leaves behind.
#include "layers/norms.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ops/test_tensors.h"

namespace lra::layers {
namespace {

using at::Tensor;

constexpr int64_t kDim = 12;

std::shared_ptr<Norm> norm_of(const char* kind) {
  auto norm = make_norm(kind, Initializer(10), kDim);
  norm->to(at::kDouble);
  // Other weights than ones and zeros.
  const at::NoGradGuard no_grad;
  uint64_t seed = 20;
  for (Tensor& p : norm->parameters()) p.add_(0.3 * ops::random_tensor(p.sizes(), seed++));
  return norm;
}

Tensor affine(const Tensor& y, const Norm& norm) {
  const auto p = norm.named_parameters();
  return y * p["weight"] + (p.contains("bias") ? p["bias"] : at::zeros({1}, at::kDouble));
}

Tensor definition(const std::string& kind, const Tensor& x, const Norm& norm,
                  const Tensor& valid_BL1) {
  if (kind == "scale") {
    return x / (x.square().sum(-1, true) + 1e-6).sqrt() * norm.named_parameters()["scale"];
  }
  if (kind == "rms") return affine(x / (x.square().mean(-1, true) + 1e-6).sqrt(), norm);
  if (kind == "layer") {
    const Tensor centred = x - x.mean(-1, true);
    return affine(centred / (centred.square().mean(-1, true) + 1e-6).sqrt(), norm);
  }
  // One row per valid position.
  const Tensor rows = x.flatten(0, 1).index({valid_BL1.flatten().to(at::kBool)});
  const Tensor mean = rows.mean(0), centred = x - mean;
  return affine(centred / ((rows - mean).square().mean(0) + 1e-5).sqrt(), norm);
}

Tensor ragged_mask() {
  Tensor mask = at::ones({3, 9}, at::kByte);
  mask[1].narrow(0, 4, 5).zero_();
  mask[2].zero_();
  return mask;
}

TEST(Norms, AgreeWithTheirDefinitionsAndGradients) {
  for (const char* kind : {"layer", "batch", "scale", "rms"}) {
    for (const Tensor& mask : {Tensor(), ragged_mask()}) {
      SCOPED_TRACE(testing::Message() << kind << ", mask " << mask.defined());
      const auto norm = norm_of(kind);
      const Tensor valid =
          (mask.defined() ? mask : at::ones({3, 9}, at::kByte)).to(at::kDouble).unsqueeze(2);
      const Tensor x = 3 * ops::random_tensor({3, 9, kDim}, 1) + 1;
      const Context context{.mask_BL = mask, .training = true};
      const auto f = [&](const std::vector<Tensor>& in) {
        return norm->forward(in[0], context) * valid;
      };
      EXPECT_LE(ops::relative_error(f({x}), definition(kind, x, *norm, valid) * valid), 1e-12);
      ops::expect_gradient_is_slope(f, {x});
    }
  }
}

TEST(Norms, TakeBfloat16) {
  for (const char* kind : {"layer", "batch", "scale", "rms"}) {
    const auto norm = make_norm(kind, Initializer(1), kDim);
    const Tensor x = ops::random_tensor({2, 7, kDim}, 3);
    const Context context{.training = true};
    const Tensor y = norm->forward(x.to(at::kBFloat16), context);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    const auto same = make_norm(kind, Initializer(1), kDim);
    same->to(at::kDouble);
    EXPECT_LE(ops::relative_error(y.to(at::kDouble), same->forward(x, context)), 0x1p-6) << kind;
  }
}

TEST(BatchNorm, PaddingChangesNothing) {
  const auto norm = norm_of("batch");
  const Tensor x = ops::random_tensor({3, 9, kDim}, 4), mask = ragged_mask();
  const Tensor valid = mask.to(at::kBool).unsqueeze(2);
  const Context context{.mask_BL = mask, .training = true};
  const Tensor y = norm->forward(x, context),
               other = norm->forward(at::where(valid, x, 100 * x + 7), context);
  EXPECT_TRUE(at::equal(y.masked_select(valid), other.masked_select(valid)));
}

// The running statistics as PyTorch keeps them, with all micro-batches of a step as one batch, and
// however often each was computed.
TEST(BatchNorm, FollowsWhatAStepSawOnce) {
  BatchNorm norm(Initializer(1), kDim);
  const Tensor first = 2 * ops::random_tensor({2, 5, kDim}, 1).to(at::kFloat) + 1,
               second = ops::random_tensor({3, 4, kDim}, 2).to(at::kFloat) - 3;
  const std::array<RunningStatistics*, 1> layers = {&norm};
  for (int repeat = 0; repeat < 2; ++repeat) {
    (void)norm.forward(first, {.training = true, .part = 0});
    (void)norm.forward(second, {.training = true, .part = 1});
  }
  EXPECT_TRUE(norm.named_buffers()["running_mean"].eq(0).all().item<bool>())
      << "not before the end";
  follow(layers, take_sums(layers));
  const Tensor rows = at::cat({first.flatten(0, 1), second.flatten(0, 1)});
  const auto buffers = norm.named_buffers();
  EXPECT_LE(ops::relative_error(buffers["running_mean"].to(at::kDouble),
                                0.1 * rows.mean(0).to(at::kDouble)),
            1e-6);
  EXPECT_LE(ops::relative_error(buffers["running_var"].to(at::kDouble),
                                0.9 + 0.1 * rows.var(0, true).to(at::kDouble)),
            1e-6);
  EXPECT_TRUE(take_sums(layers).eq(0).all().item<bool>()) << "what was taken is forgotten";
}

TEST(BatchNorm, EvaluatesWithItsRunningStatistics) {
  BatchNorm norm(Initializer(1), 2);
  const at::NoGradGuard no_grad;
  norm.named_buffers()["running_mean"].copy_(at::tensor({1.0f, 2.0f}));
  norm.named_buffers()["running_var"].copy_(at::tensor({4.0f, 9.0f}));
  const Tensor y = norm.forward(at::tensor({3.0f, 8.0f}).view({1, 1, 2}), {});
  EXPECT_NEAR(y[0][0][0].item<double>(), 2 / std::sqrt(4 + 1e-5), 1e-6);
  EXPECT_NEAR(y[0][0][1].item<double>(), 6 / std::sqrt(9 + 1e-5), 1e-6);
}

}  // namespace
}  // namespace lra::layers
