#include "kernels/gemm/outer_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

constexpr int64_t kPadding = 3;  // columns of a wider matrix

template <typename T>
struct Case {
  Case(int64_t rows, int64_t m, int64_t n) : rows(rows), m(m), n(n) {
    for (auto* matrix : {&a, &b}) {
      const int64_t columns = (matrix == &a ? m : n) + kPadding;
      RandomStream random(static_cast<uint64_t>(rows * 1000 + columns));
      matrix->resize(static_cast<size_t>(rows * columns));
      for (T& value : *matrix) value = static_cast<float>(random.normal());
    }
  }
  MatrixColumns<T> view_a() const { return {a.data(), m + kPadding, m}; }
  MatrixColumns<T> view_b() const { return {b.data(), n + kPadding, n}; }

  template <typename Sum>
  std::vector<float> run(const Sum& sum) const {
    std::vector<float> c(static_cast<size_t>(m * (n + 1)), -7);
    sum(rows, view_a(), view_b(), c.data(), n + 1);
    for (int64_t i = 0; i < m; ++i) EXPECT_EQ(c[static_cast<size_t>(i * (n + 1) + n)], -7);
    return c;
  }
  void expect_close(const std::vector<float>& c) const {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double exact = 0, size = 0;
        for (int64_t r = 0; r < rows; ++r) {
          const double product =
              double{a[r * (m + kPadding) + i]} * double{b[r * (n + kPadding) + j]};
          exact += product;
          size += std::abs(product);
        }
        const double chain = kOuterRun + static_cast<double>(rows) / kOuterRun;
        ASSERT_NEAR(c[static_cast<size_t>(i * (n + 1) + j)], exact, chain * 0x1p-24 * size + 1e-37)
            << rows << " " << i << " " << j;
      }
    }
  }

  int64_t rows, m, n;
  std::vector<T> a, b;
};

const std::vector<std::tuple<int64_t, int64_t, int64_t>> kSizes = {
    {0, 3, 5},    {1, 1, 1},     {2, 17, 16},   {3, 256, 288},
    {127, 6, 64}, {129, 10, 33}, {513, 95, 80}, {1300, 33, 250}};

constexpr Isa kIsas[] = {LRA_VECTOR_ISAS, Isa::kAvx512Bf16, Isa::kAmx, Isa::kAmxEmulated};

template <typename T>
class OuterProducts : public testing::Test {};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(OuterProducts, Types);

TYPED_TEST(OuterProducts, KeepTheErrorContract) {
  for (const auto& [rows, m, n] : kSizes) {
    const Case<TypeParam> c(rows, m, n);
    c.expect_close(c.run(ref::sum_outer_products<TypeParam>));
    c.expect_close(c.run(sum_outer_products<TypeParam>));
    for (const Isa isa : kIsas) {
      if (!isa_available(isa)) continue;
      const KernelsVariable forced(isa_name(isa));
      c.expect_close(c.run(sum_outer_products<TypeParam>));
    }
  }
}

TEST(OuterProductsOnTiles, SumRowsInTheSamePass) {
  for (const Isa isa : {Isa::kAmx, Isa::kAmxEmulated}) {
    if (!isa_available(isa)) continue;
    const KernelsVariable forced(isa_name(isa));
    for (const auto& [rows, m, n] : kSizes) {
      const Case<Bf16> c(rows, m, n);
      std::vector<float> sums(static_cast<size_t>(m) + 1, -7);
      const auto products =
          c.run([&](auto... words) { sum_outer_products_and_rows(words..., sums.data()); });
      EXPECT_EQ(products, c.run(sum_outer_products<Bf16>));
      EXPECT_EQ(sums.back(), -7);
      for (int64_t i = 0; i < m; ++i) {
        double exact = 0, size = 0;
        for (int64_t r = 0; r < rows; ++r) {
          exact += double{c.a[r * (m + kPadding) + i]};
          size += std::abs(double{c.a[r * (m + kPadding) + i]});
        }
        const double chain = 24 + static_cast<double>(rows) / 256;
        ASSERT_NEAR(sums[static_cast<size_t>(i)], exact, chain * 0x1p-24 * size)
            << rows << " " << i;
      }
    }
  }
}

TEST(OuterProductsOnTiles, EmulationHasTheBitsOfTheProcessor) {
  if (const std::string why = why_untested(Isa::kAmx); !why.empty()) GTEST_SKIP() << why;
  const auto run_with = [](const Case<Bf16>& c, const char* kernels) {
    const KernelsVariable forced(kernels);
    return c.run(sum_outer_products<Bf16>);
  };
  for (const auto& [rows, m, n] : kSizes) {
    const Case<Bf16> c(rows, m, n);
    EXPECT_EQ(run_with(c, "amx_emulated"), run_with(c, "amx"));
    const auto sums_with = [&](const char* kernels) {
      const KernelsVariable forced(kernels);
      std::vector<float> sums(static_cast<size_t>(c.m));
      c.run([&](auto... words) { sum_outer_products_and_rows(words..., sums.data()); });
      return sums;
    };
    EXPECT_EQ(sums_with("amx_emulated"), sums_with("amx"));
  }
}

// This property lets a gradient be cut among threads.
TYPED_TEST(OuterProducts, GiveAnElementTheSameBitsInEveryBlock) {
  const Case<TypeParam> c(700, 90, 100);
  for (const Isa isa : kIsas) {
    if (!isa_available(isa)) continue;
    const KernelsVariable forced(isa_name(isa));
    const auto whole = c.run(sum_outer_products<TypeParam>);
    for (const int64_t first : {0, 1, 47, 89}) {
      MatrixColumns<TypeParam> a = c.view_a(), b = c.view_b();
      a.data += first;
      a.columns = 1;
      b.data += first;
      b.columns -= first;
      std::vector<float> row(100);
      sum_outer_products(c.rows, a, b, row.data(), 100);
      for (int64_t j = 0; j < b.columns; ++j) {
        ASSERT_EQ(row[static_cast<size_t>(j)], whole[static_cast<size_t>(first * 101 + first + j)]);
      }
    }
  }
}

TEST(OuterProducts, DoNotStopWhereOneChainOfFloatsWould) {
  const std::vector<float> a(20'000'000, 1);
  float sum = 0;
  sum_outer_products<float>(20'000'000, {a.data(), 1, 1}, {a.data(), 1, 1}, &sum, 1);
  EXPECT_EQ(sum, 20'000'000);
}

TEST(OuterProducts, RefuseBlocksThatAreTooLarge) {
  const std::vector<float> x(400, 1);
  float c = 0;
  EXPECT_THROW(
      sum_outer_products<float>(1, {x.data(), 400, kOuterRows + 1}, {x.data(), 400, 1}, &c, 1),
      CheckFailure);
}

}  // namespace
}  // namespace lra::kernels
