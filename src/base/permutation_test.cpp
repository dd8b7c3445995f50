#include "base/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"

namespace lra {
namespace {

TEST(Permutation, HitsEveryValueOnce) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 7, 16, 17, 64, 65, 1000, 4096, 96000}) {
    const Permutation permutation(n, 11);
    std::vector<bool> seen(n);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t image = permutation(i);
      ASSERT_LT(image, n);
      ASSERT_FALSE(seen[image]) << n << " " << i;
      seen[image] = true;
    }
  }
}

TEST(Permutation, IsAFunctionOfTheKey) {
  const Permutation a(1000, 1), same(1000, 1), other(1000, 2);
  int equal = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a(i), same(i));
    equal += a(i) == other(i);
  }
  // Two random permutations agree in one place on average.
  EXPECT_LT(equal, 10);
}

TEST(Permutation, WorksUpToTheLargestSizes) {
  const uint64_t n = UINT64_MAX;
  const Permutation permutation(n, 5);
  EXPECT_LT(permutation(n - 1), n);
  EXPECT_NE(permutation(0), permutation(1));
}

TEST(Permutation, RefusesIndicesOutside) {
  EXPECT_THROW(Permutation(10, 1)(10), CheckFailure);
  EXPECT_THROW(Permutation(0, 1), CheckFailure);
}

double chi_square(const std::vector<int>& counts, double mean) {
  double sum = 0;
  for (const int count : counts) sum += (count - mean) * (count - mean) / mean;
  return sum;
}

TEST(Permutation, SendsTheFirstElementEverywhereEqually) {
  for (const uint64_t n : {2, 3, 10, 100}) {
    std::vector<int> counts(n);
    const int keys = 20000;
    for (int key = 0; key < keys; ++key) ++counts[Permutation(n, static_cast<uint64_t>(key))(0)];
    const double freedom = static_cast<double>(n) - 1;
    EXPECT_LT(chi_square(counts, keys / static_cast<double>(n)),
              freedom + 5 * std::sqrt(2 * freedom))
        << n;
  }
}

// All ordered pairs of images of two adjacent inputs, the first to show a weak round function.
TEST(Permutation, SendsNeighboursToIndependentPlaces) {
  constexpr uint64_t kSize = 16;
  std::vector<int> counts(kSize * kSize);
  const int keys = 48000;
  for (int key = 0; key < keys; ++key) {
    const Permutation permutation(kSize, static_cast<uint64_t>(key));
    ++counts[permutation(0) * kSize + permutation(1)];
  }
  std::vector<int> off_diagonal;
  for (uint64_t i = 0; i < counts.size(); ++i) {
    if (i / kSize != i % kSize) off_diagonal.push_back(counts[i]);
  }
  const double freedom = kSize * (kSize - 1) - 1.0;
  EXPECT_LT(chi_square(off_diagonal, keys / (freedom + 1)), freedom + 5 * std::sqrt(2 * freedom));
}

}  // namespace
}  // namespace lra
