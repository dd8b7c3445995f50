#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

std::vector<float> random_values(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> x(count);
  for (float& value : x) value = static_cast<float>(random.normal());
  return x;
}

using Gemm = void (*)(const GemmSize&, const GemmOperands&, bool);

// The product, row after row, without the columns beyond `size.columns`.
std::vector<float> product(Gemm gemm, const GemmSize& size, bool by_columns, bool accumulate) {
  const int64_t padded = (size.columns + kGemmVector - 1) / kGemmVector * kGemmVector;
  const auto a = random_values(size.rows * size.depth, 1);
  const auto b = random_values(size.depth * padded, 2);
  auto c = random_values(size.rows * (padded + 1), 3);
  GemmOperands operands;
  operands.a = a.data();
  operands.a_row = by_columns ? 1 : size.depth;
  operands.a_depth = by_columns ? size.rows : 1;
  operands.b = b.data();
  // `by_columns` also stands for the other layout of B: one panel of sixteen columns after another.
  operands.b_depth = by_columns ? kGemmVector : padded;
  operands.b_vector = by_columns ? size.depth * kGemmVector : kGemmVector;
  operands.c = c.data();
  operands.c_row = padded + 1;
  gemm(size, operands, accumulate);
  std::vector<float> result;
  for (int64_t i = 0; i < size.rows; ++i) {
    const auto row = c.begin() + i * (padded + 1);
    result.insert(result.end(), row, row + size.columns);
  }
  return result;
}

TEST(GemmRef, MultipliesASmallCaseByHand) {
  const float a[] = {1, 2, 3, 4};  // 2 x 2
  std::vector<float> b(32, 0), c(32, 100);
  b[0] = 5, b[1] = 6, b[16] = 7, b[17] = 8;
  ref::gemm({2, 16, 2}, {a, 2, 1, b.data(), 16, 16, c.data(), 16}, true);
  EXPECT_EQ(c[0], 119);
  EXPECT_EQ(c[1], 122);
  EXPECT_EQ(c[16], 143);
  EXPECT_EQ(c[17], 150);
  EXPECT_EQ(c[2], 100);
}

using GemmVectors = ImplementationTest;

TEST_P(GemmVectors, MatchesTheReferenceAtEveryBlockSize) {
  for (int64_t rows = 1; rows <= 17; ++rows) {
    for (const int64_t columns : {1, 7, 8, 9, 16, 17, 48, 64, 80, 96, 100, 112, 128, 144}) {
      for (const int64_t depth : {0, 1, 37}) {
        for (const bool by_columns : {false, true}) {
          for (const bool accumulate : {false, true}) {
            const GemmSize size{rows, columns, depth};
            const auto got = product(gemm, size, by_columns, accumulate);
            const auto want = product(ref::gemm, size, by_columns, accumulate);
            for (size_t n = 0; n < got.size(); ++n) ASSERT_NEAR(got[n], want[n], 2e-5);
          }
        }
      }
    }
  }
}

TEST_P(GemmVectors, BitsDoNotDependOnHowDepthIsCut) {
  const auto a = random_values(7 * 60, 1), b = random_values(60 * 32, 2);
  std::vector<float> whole(7 * 32), parts(7 * 32);
  gemm({7, 32, 60}, {a.data(), 60, 1, b.data(), 32, 16, whole.data(), 32}, false);
  gemm({7, 32, 23}, {a.data(), 60, 1, b.data(), 32, 16, parts.data(), 32}, false);
  gemm({7, 32, 37}, {a.data() + 23, 60, 1, b.data() + 23 * 32, 32, 16, parts.data(), 32}, true);
  EXPECT_EQ(whole, parts);
}

LRA_INSTANTIATE_IMPLEMENTATIONS(GemmVectors, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
