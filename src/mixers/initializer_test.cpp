#include "mixers/initializer.h"

#include "mixers/layers.h"
#include "ops/test_tensors.h"

namespace lra::mixers {
namespace {

using at::Tensor;

double mean_of(const Tensor& t) { return t.to(at::kDouble).mean().item<double>(); }
double deviation_of(const Tensor& t) { return t.to(at::kDouble).std().item<double>(); }
double largest_of(const Tensor& t) { return t.abs().max().item<double>(); }

// With 2^18 draws a mean is off by more than 5 standard deviations / 512 about once in a million.
constexpr int64_t kNumRows = 512, kColumns = 512;
constexpr double kMeanError = 5.0 / 512, kDeviationError = 0.01;

TEST(Initializer, NormalHasItsMeanAndDeviation) {
  const Tensor t = Initializer(1).normal({kNumRows, kColumns}, 0.02);
  EXPECT_NEAR(mean_of(t), 0, 0.02 * kMeanError);
  EXPECT_NEAR(deviation_of(t), 0.02, 0.02 * kDeviationError);
  EXPECT_GT(largest_of(t), 0.02 * 3.5);
}

TEST(Initializer, XavierIsUniformWithinItsBound) {
  const Tensor t = Initializer(2).xavier(kNumRows, 2 * kColumns);
  const double bound = std::sqrt(6.0 / (kNumRows + 2 * kColumns));
  EXPECT_LE(largest_of(t), bound);
  EXPECT_GT(largest_of(t), 0.999 * bound);
  EXPECT_NEAR(mean_of(t), 0, bound * kMeanError);
  EXPECT_NEAR(deviation_of(t), bound / std::sqrt(3.0), bound * kDeviationError);
}

TEST(Initializer, LecunIsACutNormalOfItsVariance) {
  const Tensor t = Initializer(3).lecun(kNumRows, kColumns);
  const double expected = 1 / std::sqrt(double{kColumns});
  EXPECT_NEAR(deviation_of(t), expected, expected * kDeviationError);
  EXPECT_NEAR(mean_of(t), 0, expected * kMeanError);
  // The deviation after a cut at two deviations is 0.87962566 of the one before.
  const double cut = 2 * expected / 0.87962566;
  EXPECT_LE(largest_of(t), cut * (1 + 1e-6));
  EXPECT_GT(largest_of(t), 0.99 * cut);
}

TEST(Initializer, IsAFunctionOfSeedAndOrder) {
  Initializer first(7), again(7), other(8);
  const Tensor a = first.normal({50}, 1), b = first.normal({50}, 1);
  EXPECT_FALSE(at::equal(a, b));
  EXPECT_TRUE(at::equal(again.normal({50}, 1), a));
  EXPECT_TRUE(at::equal(again.normal({50}, 1), b));
  EXPECT_FALSE(at::equal(other.normal({50}, 1), a));
}

TEST(HeadProjection, DrawsEachPartOnItsOwn) {
  constexpr int64_t kDim = 64, kHeads = 4, kHeadDim = 8, kWidth = kHeads * kHeadDim;
  Initializer init(9);
  const HeadProjection projection(3, kDim, kHeads, kHeadDim, init);
  // The bound of one part; that of the stacked matrix would be 0.71 of it.
  const double bound = std::sqrt(6.0 / (kWidth + kDim));
  for (int64_t part = 0; part < 3; ++part) {
    const Tensor weight = projection.weight.narrow(0, part * kWidth, kWidth);
    EXPECT_LE(largest_of(weight), bound);
    EXPECT_GT(largest_of(weight), 0.99 * bound);
  }
}

TEST(LayerNorm, AgreesWithItsDefinition) {
  Initializer init(10);
  LayerNorm norm(12, init);
  norm.to(at::kDouble);
  const Tensor x = 3 * ops::random_tensor({2, 5, 12}, 1) + 1;
  const Tensor centred = x - x.mean(-1, true);
  const Tensor expected = centred / (centred.square().mean(-1, true) + 1e-6).sqrt();
  EXPECT_LE(ops::relative_error(norm.forward(x), expected), 1e-12);
}

}  // namespace
}  // namespace lra::mixers
