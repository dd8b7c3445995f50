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

}  // namespace
}  // namespace lra::report
