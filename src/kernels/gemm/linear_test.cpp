#include "kernels/gemm/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

constexpr int64_t kPadding = 3;  // columns of a wider matrix
constexpr Isa kTiles[] = {Isa::kAmx, Isa::kAmxEmulated};

std::vector<Bf16> normal(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<Bf16> x(static_cast<size_t>(count));
  for (Bf16& value : x) value = static_cast<float>(random.normal());
  return x;
}

struct Case {
  int64_t rows, depth, columns;
  bool transposed, has_bias, gelu;

  std::vector<Bf16> x = normal(rows * (depth + kPadding), 1);
  std::vector<Bf16> w = normal(depth * columns, 2);
  std::vector<float> bias = std::vector<float>(static_cast<size_t>(columns), 0.25f);

  float weight(int64_t k, int64_t n) const {
    return w[static_cast<size_t>(transposed ? n * depth + k : k * columns + n)];
  }
  // The rows from `first` on.
  std::vector<Bf16> run(int64_t first = 0) const {
    const int64_t y_row = columns + kPadding;
    std::vector<Bf16> y(static_cast<size_t>((rows - first) * y_row), Bf16(-7.0f));
    linear_rows({rows - first, depth, columns, x.data() + first * (depth + kPadding),
                 depth + kPadding, w.data(), transposed ? 1 : columns, transposed ? depth : 1,
                 has_bias ? bias.data() : nullptr, gelu, y.data(), y_row});
    return y;
  }
  void expect_close(const std::vector<Bf16>& y) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < columns; ++n) {
        double exact = has_bias ? 0.25 : 0, size = std::abs(exact);
        for (int64_t k = 0; k < depth; ++k) {
          const double product =
              double{x[static_cast<size_t>(r * (depth + kPadding) + k)]} * double{weight(k, n)};
          exact += product;
          size += std::abs(product);
        }
        const double u = std::sqrt(2 / M_PI) * (exact + 0.044715 * exact * exact * exact);
        const double wanted = gelu ? 0.5 * exact * (1 + std::tanh(u)) : exact;
        const double before_rounding =
            (static_cast<double>(depth) / 32 + 20) * 0x1p-24 * size * (gelu ? 1.2 : 1.0);
        ASSERT_NEAR(y[static_cast<size_t>(r * (columns + kPadding) + n)], wanted,
                    before_rounding + 0x1p-8 * std::abs(wanted) + (gelu ? 2e-6 : 1e-37))
            << r << " " << n;
      }
      for (int64_t n = columns; n < columns + kPadding; ++n) {
        ASSERT_EQ(float{y[static_cast<size_t>(r * (columns + kPadding) + n)]}, -7);
      }
    }
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [rows, depth, columns] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{{0, 5, 5},
                                                          {1, 1, 1},
                                                          {33, 31, 17},
                                                          {32, 32, 32},
                                                          {70, 64, 48},
                                                          {200, 257, 100},
                                                          {5, 1030, 33},
                                                          {17, 96, 16}}) {
    for (int n = 0; n < 4; ++n)
      all.push_back({rows, depth, columns, n % 2 == 0, n < 2, n == 1 || n == 2});
  }
  return all;
}

bool equal(const std::vector<Bf16>& a, const std::vector<Bf16>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](Bf16 x, Bf16 y) { return float{x} == float{y}; });
}

TEST(LinearRows, KeepTheErrorContract) {
  for (const Isa isa : kTiles) {
    if (!isa_available(isa)) continue;
    const KernelsVariable forced(isa_name(isa));
    for (const Case& c : cases()) c.expect_close(c.run());
  }
}

TEST(LinearRows, AreTheSameBitsWhereverTheirBlocksBegin) {
  for (const Isa isa : kTiles) {
    if (!isa_available(isa)) continue;
    const KernelsVariable forced(isa_name(isa));
    const Case c{100, 70, 40, true, true, true};
    const auto all = c.run();
    for (const int64_t first : {1, 31, 33}) {
      EXPECT_TRUE(equal({all.begin() + first * (c.columns + kPadding), all.end()}, c.run(first)));
    }
  }
}

TEST(LinearRows, EmulationHasTheBitsOfTheProcessor) {
  if (const std::string why = why_untested(Isa::kAmx); !why.empty()) GTEST_SKIP() << why;
  for (const Case& c : cases()) {
    const auto run_with = [&](const char* kernels) {
      const KernelsVariable forced(kernels);
      return c.run();
    };
    EXPECT_TRUE(equal(run_with("amx_emulated"), run_with("amx")));
  }
}

}  // namespace
}  // namespace lra::kernels
