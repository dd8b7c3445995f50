#include "base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace lra {
namespace {

TEST(Histogram, HoldsEveryFiniteValueInItsBucket) {
  const std::vector<float> values = {0.0f,  1.0f,   1.0f,  -2.5f, 1e-20f,  -1e-20f,
                                     3e25f, -3e25f, 0.01f, NAN,   INFINITY};
  const Histogram h = histogram_of(values);
  EXPECT_EQ(h.count, 9);
  EXPECT_FLOAT_EQ(static_cast<float>(h.max), 3e25f);
  EXPECT_FLOAT_EQ(static_cast<float>(h.min), -3e25f);
  EXPECT_EQ(std::accumulate(h.counts.begin(), h.counts.end(), 0.0), 9);
  ASSERT_EQ(h.limits.size(), h.counts.size());
  EXPECT_TRUE(std::is_sorted(h.limits.begin(), h.limits.end()));
  for (size_t i = 0; i < h.limits.size(); ++i) {
    const double low = i == 0 ? -std::numeric_limits<double>::infinity() : h.limits[i - 1];
    const auto inside = std::count_if(values.begin(), values.end(), [&](float value) {
      return value >= low && value < h.limits[i];
    });
    EXPECT_EQ(h.counts[i], static_cast<double>(inside)) << "bucket below " << h.limits[i];
  }
}

TEST(Histogram, KeepsOnlyTheStretchInUse) {
  const Histogram h = histogram_of(std::vector<float>{1.0f, 1.05f, 2.0f});
  EXPECT_LT(h.limits.size(), 12u);
  EXPECT_EQ(h.counts.front(), 0);
  EXPECT_GT(h.counts.back(), 0);
  EXPECT_DOUBLE_EQ(h.sum_squares, 1.0 + static_cast<double>(1.05f) * 1.05f + 4.0);
}

TEST(Histogram, OfNothingIsEmpty) {
  const Histogram h = histogram_of(std::vector<float>{NAN});
  EXPECT_EQ(h.count, 0);
  EXPECT_TRUE(h.limits.empty());
}

}  // namespace
}  // namespace lra
