#include "ops/pointwise/pointwise.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr uint64_t kDropoutKey = 0x123456789ABCDEFULL;
constexpr double kRate = 0.3;
// More than one row of 1024 and no multiple of a vector.
const std::vector<int64_t> kShape = {3, 7, 109};

TEST(Dropout, MaskIsTheCounterFunction) {
  const Tensor x = random_tensor(kShape, 1, at::kFloat);
  const Tensor factors = dropout_factors(kShape, kRate, kDropoutKey).to(at::kFloat);
  EXPECT_TRUE(at::equal(ops::dropout(x, kRate, kDropoutKey), x * factors));
}

TEST(Dropout, GradientUsesTheSameMask) {
  expect_agrees([](const auto& in) { return ops::dropout(in[0], kRate, kDropoutKey); }, at::kFloat,
                [](const auto& in) { return in[0] * dropout_factors(kShape, kRate, kDropoutKey); },
                {random_tensor(kShape, 2)}, {.value = 1e-7, .gradient = 1e-7});
}

TEST(Dropout, DropsAtTheRateAndKeepsTheMean) {
  constexpr int64_t kCount = 1 << 20;
  const Tensor ones = at::ones({kCount});
  for (const double rate : {0.1, 0.5, 0.9}) {
    const Tensor y = ops::dropout(ones, rate, kDropoutKey);
    const double dropped = static_cast<double>(y.eq(0).sum().item<int64_t>()) / kCount;
    // Five standard deviations of a share of 2^20 draws, and the 2^-17 of the threshold.
    EXPECT_NEAR(dropped, rate, 5 * std::sqrt(rate * (1 - rate) / kCount) + 0x1p-17);
    EXPECT_NEAR(y.mean().item<double>(), 1, 5 * std::sqrt(rate / (1 - rate) / kCount) + 1e-4);
  }
}

TEST(Dropout, KeysGiveDifferentMasks) {
  const Tensor ones = at::ones({4096});
  EXPECT_FALSE(at::equal(ops::dropout(ones, 0.5, 1), ops::dropout(ones, 0.5, 2)));
  // Keys that differ only in the high half: the schema carries them as signed integers.
  EXPECT_FALSE(
      at::equal(ops::dropout(ones, 0.5, 1), ops::dropout(ones, 0.5, 1 | uint64_t{1} << 63)));
}

TEST(Dropout, AtRateZeroReturnsItsInput) {
  const Tensor x = random_tensor({5}, 3, at::kFloat);
  EXPECT_TRUE(ops::dropout(x, 0, kDropoutKey).is_same(x));
}

TEST(Dropout, CountsElementsInLogicalOrder) {
  const Tensor x = random_tensor({9, 130}, 4, at::kFloat).t();
  EXPECT_TRUE(at::equal(ops::dropout(x, kRate, kDropoutKey),
                        ops::dropout(x.contiguous(), kRate, kDropoutKey)));
}

TEST(DropoutAdd, IsResidualPlusDropout) {
  for (const double rate : {0.0, kRate}) {
    expect_agrees(
        [&](const auto& in) { return dropout_add(in[0], in[1], rate, kDropoutKey); }, at::kFloat,
        [&](const auto& in) { return in[1] + in[0] * dropout_factors(kShape, rate, kDropoutKey); },
        {random_tensor(kShape, 5), random_tensor(kShape, 6)}, {.value = 1e-6, .gradient = 1e-6});
  }
}

TEST(DropoutAdd, RoundsOnceInBf16) {
  for (const double rate : {0.0, kRate}) {
    expect_agrees_in_bf16(
        [&](const auto& in) { return dropout_add(in[0], in[1], rate, kDropoutKey); },
        [&](const auto& in) { return in[1] + in[0] * dropout_factors(kShape, rate, kDropoutKey); },
        {random_tensor(kShape, 5), random_tensor(kShape, 6)}, 2,
        {.value = 0x1p-9, .gradient = 0x1p-9});
  }
}

TEST(DropoutAdd, RefusesDifferentShapes) {
  EXPECT_THROW(dropout_add(at::ones({2, 3}), at::ones({3}), 0.1, kDropoutKey), CheckFailure);
}

TEST(GeluDropout, HasItsGradient) {
  expect_agrees([](const auto& in) { return ops::gelu_dropout(in[0], kRate, kDropoutKey); },
                at::kFloat,
                [](const auto& in) {
                  return at::gelu(in[0], "tanh") * dropout_factors(kShape, kRate, kDropoutKey);
                },
                {random_tensor(kShape, 2)}, {.value = 1e-6, .gradient = 1e-6});
}

TEST(GeluDropout, AgreesWithTheComposition) {
  const Tensor x = 4 * random_tensor(kShape, 7), grad = random_tensor(kShape, 8);
  const Tensor expected = at::gelu(x, "tanh") * dropout_factors(kShape, kRate, kDropoutKey);
  const Tensor expected_grad =
      at::gelu_backward(grad * dropout_factors(kShape, kRate, kDropoutKey), x, "tanh");
  for (const auto type : {at::kFloat, at::kDouble}) {
    const double tolerance = type == at::kFloat ? 1e-6 : 1e-7;
    const Tensor y = gelu_dropout(x.to(type), kRate, kDropoutKey);
    EXPECT_LE(relative_error(y, expected), tolerance);
    const auto grads = gelu_dropout_backward(x.to(type), grad.to(type), kRate, kDropoutKey);
    EXPECT_LE(relative_error(grads.x, expected_grad), tolerance);
    EXPECT_TRUE(at::equal(grads.y, y));
  }
}

}  // namespace
}  // namespace lra::ops
