#include "kernels/simd/bf16.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lra::kernels {
namespace {

TEST(Bf16, HoldsEveryOneOfItsValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = std::bit_cast<float>(bits << 16);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float{Bf16(value)}));
    } else {
      EXPECT_EQ(Bf16(value).bits, bits);
    }
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  const float one = 1, step = 0x1p-7f;
  EXPECT_EQ(float{Bf16(one + 0.49f * step)}, one);
  EXPECT_EQ(float{Bf16(one + 0.51f * step)}, one + step);
  EXPECT_EQ(float{Bf16(one + 0.5f * step)}, one);
  EXPECT_EQ(float{Bf16(one + 1.5f * step)}, one + 2 * step);
  EXPECT_EQ(float{Bf16(-one - 1.5f * step)}, -one - 2 * step);
  EXPECT_EQ(float{Bf16(std::numeric_limits<float>::max())}, std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace lra::kernels
