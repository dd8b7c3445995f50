#include "kernels/pointwise/column_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/choice.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

template <typename T>
std::vector<T> random_matrix(int64_t rows, int64_t columns) {
  RandomStream random(static_cast<uint64_t>(rows * 1000 + columns));
  std::vector<T> x(static_cast<size_t>(rows * columns));
  for (T& value : x) value = static_cast<float>(random.normal());
  return x;
}

using ColumnSums = ImplementationTest;

template <typename T>
void expect_contract() {
  for (const auto& [rows, columns] :
       {std::pair{1, 1}, {3, 17}, {511, 128}, {512, 129}, {1500, 300}}) {
    const auto x = random_matrix<T>(rows, columns);
    std::vector<float> sums(columns, -1), reference(columns, -1);
    column_sums(rows, columns, x.data(), sums.data());
    ref::column_sums(rows, columns, x.data(), reference.data());
    for (int64_t c = 0; c < columns; ++c) {
      double exact = 0, size = 0;
      for (int64_t r = 0; r < rows; ++r) {
        exact += double{x[r * columns + c]};
        size += std::abs(double{x[r * columns + c]});
      }
      const double bound = (kSumRows + static_cast<double>(rows) / kSumRows) * 0x1p-24 * size;
      EXPECT_NEAR(sums[c], exact, bound);
      EXPECT_EQ(sums[c], reference[c]);
    }
  }
}

TEST_P(ColumnSums, KeepTheErrorContract) {
  expect_contract<float>();
  expect_contract<Bf16>();
}

TEST(ColumnSumsBf16, DoNotStopWhereBfloat16Would) {
  const std::vector<Bf16> ones(100'000, Bf16(1));
  float sum = 0;
  column_sums(100'000, 1, ones.data(), &sum);
  EXPECT_EQ(sum, 100'000);
}

template <typename T>
void expect_same_bits() {
  const auto x = random_matrix<T>(700, 1000);
  std::vector<float> one(1000), five(1000);
  const int before = num_threads();
  set_num_threads(1);
  column_sums(700, 1000, x.data(), one.data());
  set_num_threads(5);
  column_sums(700, 1000, x.data(), five.data());
  set_num_threads(before);
  EXPECT_EQ(one, five);
}

TEST_P(ColumnSums, GiveTheSameBitsAtAnyNumberOfThreads) {
  expect_same_bits<float>();
  expect_same_bits<Bf16>();
}

LRA_INSTANTIATE_IMPLEMENTATIONS(ColumnSums, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
