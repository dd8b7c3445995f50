#include "report/tables/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace lra::report {
namespace {

TEST(Statistics, OneValueHasNoSpread) {
  const Summary summary = summarize(std::vector<double>{36.5});
  EXPECT_EQ(summary.count, 1);
  EXPECT_EQ(summary.mean, 36.5);
  EXPECT_FALSE(summary.deviation);
  EXPECT_FALSE(summary.half_width95);
}

TEST(Statistics, SpreadIsTheSampleStandardDeviation) {
  const Summary summary = summarize(std::vector<double>{1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(summary.mean, 2.5);
  EXPECT_NEAR(*summary.deviation, 1.2909944, 1e-6);
  EXPECT_NEAR(*summary.half_width95, 3.182 * 1.2909944 / 2, 1e-6);
}

TEST(Statistics, NothingHasNoMean) { EXPECT_EQ(summarize({}).count, 0); }

TEST(Statistics, QuantilesAgreeWithPublishedTables) {
  EXPECT_NEAR(t_quantile(1), 12.706, 0.001);
  EXPECT_NEAR(t_quantile(10), 2.228, 0.001);
  EXPECT_NEAR(t_quantile(40), 2.021, 0.005);
  EXPECT_NEAR(t_quantile(120), 1.980, 0.005);
  for (int degrees = 1; degrees < 60; ++degrees) {
    EXPECT_GT(t_quantile(degrees), t_quantile(degrees + 1)) << degrees;
  }
}

TEST(Statistics, AnAccuracyOnTwoThousandExamplesIsKnownToTwoPoints) {
  EXPECT_NEAR(binomial_half_width95(36.5, 2000), 2.13, 0.005);
  EXPECT_NEAR(binomial_half_width95(0, 16), 19.36, 0.005);
  EXPECT_NEAR(binomial_half_width95(100, 16), 19.36, 0.005);
}

// scipy.stats: 2 * t.sf(t, degrees).
TEST(Statistics, PValuesOfTheTTestAreThoseOfSciPy) {
  EXPECT_NEAR(t_test_p(2.5, 1), 0.24223788318168682, 1e-12);
  EXPECT_NEAR(t_test_p(-2.5, 2), 0.12961172022151082, 1e-12);
  EXPECT_NEAR(t_test_p(1.0, 4), 0.37390096630005887, 1e-12);
  EXPECT_NEAR(t_test_p(3.7, 9), 0.0049205621893296395, 1e-12);
  EXPECT_NEAR(t_test_p(0.3, 7), 0.7728900504021342, 1e-12);
  EXPECT_EQ(t_test_p(0, 3), 1);
}

// scipy.stats.binomtest(min(b, c), b + c, 0.5).
TEST(Statistics, McNemarIsTheExactBinomialTest) {
  EXPECT_NEAR(mcnemar_p(12, 3), 0.03515625, 1e-12);
  EXPECT_NEAR(mcnemar_p(0, 6), 0.03125, 1e-12);
  EXPECT_NEAR(mcnemar_p(250, 200), 0.02079180024760781, 1e-10);
  EXPECT_NEAR(mcnemar_p(3000, 3300), 0.00016475607669748363, 1e-10);
  EXPECT_EQ(mcnemar_p(5, 5), 1);
  EXPECT_EQ(mcnemar_p(0, 0), 1);
}

TEST(Statistics, HolmMultipliesTheLeastByTheirNumberAndNeverDecreases) {
  const std::vector<double> adjusted = holm_adjusted({0.01, 0.04, 0.03, 0.005});
  const std::vector<double> expected = {0.03, 0.06, 0.06, 0.02};  // R: p.adjust(p, "holm")
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-12) << i;
  EXPECT_EQ(holm_adjusted({0.9, 0.8}), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace lra::report
