// The arithmetic of tiles, emulated and where the processor has them, through the smallest kernel
// on them: one number of a sum of outer products.
#include "kernels/simd/bf16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/flush_denormals.h"
#include "kernels/gemm/outer_products.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

float without_subnormals(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// The order that simd/tiles.h documents, for up to 256 numbers: one number of c after another.
float product_by_tiles(const std::vector<Bf16>& a, const std::vector<Bf16>& b) {
  float c = 0;
  for (size_t first = 0; first < a.size(); first += 32) {
    float sums[2] = {0, 0};  // of even places, of odd ones
    for (size_t n = first; n < std::min(a.size(), first + 32); ++n) {
      sums[n % 2] = without_subnormals(
          std::fma(without_subnormals(a[n]), without_subnormals(b[n]), sums[n % 2]));
    }
    c = without_subnormals(c + without_subnormals(sums[0] + sums[1]));
  }
  return c;
}

float product(const std::vector<Bf16>& a, const std::vector<Bf16>& b) {
  const FlushDenormals as_in_the_program;
  float c = -7;
  sum_outer_products<Bf16>(static_cast<int64_t>(a.size()), {a.data(), 1, 1}, {b.data(), 1, 1}, &c,
                           1);
  return c;
}

// Normal numbers times 2^n, n between `least` and `most`.
std::vector<Bf16> numbers(size_t count, int least, int most, uint64_t seed) {
  RandomStream random(seed);
  std::vector<Bf16> x(count);
  for (Bf16& value : x) {
    const double exponent = least + random.uniform() * (most - least);
    value = static_cast<float>(random.normal() * std::exp2(std::round(exponent)));
  }
  return x;
}

using Tiles = ImplementationTest;

TEST_P(Tiles, AddInTheDocumentedOrder) {
  for (size_t count = 1; count <= 256; count += count < 70 ? 1 : 31) {
    const auto a = numbers(count, -8, 8, count), b = numbers(count, -8, 8, 1000 + count);
    ASSERT_EQ(product(a, b), product_by_tiles(a, b)) << count;
  }
}

TEST_P(Tiles, CountSubnormalsAsZero) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    // Numbers below 2^-126, and products and sums of larger ones there.
    const auto a = numbers(40, -130, -60, seed), b = numbers(40, -70, 0, 100 + seed);
    ASSERT_EQ(product(a, b), product_by_tiles(a, b)) << seed;
  }
  EXPECT_EQ(product({Bf16(0x1p-127f)}, {Bf16(0x1p100f)}), 0);
}

TEST_P(Tiles, KeepWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(product({infinity}, {0.0f})));
  EXPECT_TRUE(std::isnan(product({std::nanf(""), 1.0f}, {1.0f, 1.0f})));
  EXPECT_EQ(product({infinity, 1.0f}, {2.0f, 1.0f}), infinity);
  // Two products overflow before their sum is taken.
  EXPECT_TRUE(std::isnan(product({0x1p100f, 0x1p100f}, {0x1p100f, -0x1p100f})));
}

LRA_INSTANTIATE_IMPLEMENTATIONS(Tiles, Isa::kAmx, Isa::kAmxEmulated);

}  // namespace
}  // namespace lra::kernels
