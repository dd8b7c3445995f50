#include "layers/initializer.h"

#include "ops/test_tensors.h"

namespace lra::layers {
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

TEST(Initializer, IsAFunctionOfSeedAndName) {
  const Initializer init(7);
  const Tensor a = init.of("a").normal({50}, 1);
  EXPECT_FALSE(at::equal(init.of("b").normal({50}, 1), a));
  EXPECT_TRUE(at::equal(Initializer(7).of("a").normal({50}, 1), a));
  EXPECT_FALSE(at::equal(Initializer(8).of("a").normal({50}, 1), a));
  EXPECT_EQ(init.of("a").of("b").key(), init.of("a.b").key());
  // FNV-1a of "foobar", from its authors' test vectors.
  EXPECT_EQ(init.of("foobar").key(), derive_key(7, RandomUse::kWeights, 0xF739'67E8, 0x8594'4171));
}

}  // namespace
}  // namespace lra::layers
