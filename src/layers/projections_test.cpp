#include "layers/projections.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lra::layers {
namespace {

TEST(HeadProjection, DrawsEachPartOnItsOwn) {
  constexpr int64_t kDim = 64, kWidth = 4 * 8;
  const HeadProjection projection(Initializer(9), 3, kDim, {.heads = 4, .head_dim = 8});
  // The bound of one part; that of the stacked matrix would be 0.71 of it.
  const double bound = std::sqrt(6.0 / (kWidth + kDim));
  for (int64_t part = 0; part < 3; ++part) {
    const double largest =
        projection.weight.narrow(0, part * kWidth, kWidth).abs().max().item<double>();
    EXPECT_LE(largest, bound);
    EXPECT_GT(largest, 0.99 * bound);
  }
}

}  // namespace
}  // namespace lra::layers
