#include "layers/positions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/pointwise/rotary.h"
#include "ops/test_tensors.h"

namespace lra::layers {
namespace {

using at::Tensor;

TEST(SinusoidTable, HoldsInterleavedSinesAndCosines) {
  const Tensor table = sinusoid_table(2001, 8);
  for (const int64_t p : {0, 1, 7, 2000}) {
    for (int64_t c = 0; c < 4; ++c) {
      const double angle = static_cast<double>(p) / std::pow(10000.0, 2.0 * c / 8);
      EXPECT_NEAR(table[p][2 * c].item<double>(), std::sin(angle), 1e-6) << p << " " << c;
      EXPECT_NEAR(table[p][2 * c + 1].item<double>(), std::cos(angle), 1e-6) << p << " " << c;
    }
  }
  // Computed by hand: channel 2 of width 8 turns with frequency 0.1.
  EXPECT_NEAR(table[10][2].item<double>(), 0.8414709848, 1e-6);
}

TEST(SinusoidTable, TakesAnOddWidth) {
  const Tensor table = sinusoid_table(3, 5);
  EXPECT_NEAR(table[2][4].item<double>(), std::sin(2 / std::pow(10000.0, 4.0 / 5)), 1e-7);
}

Tensor rotated(const Tensor& x_BLHE) { return ops::rotary(x_BLHE, rotary_table(x_BLHE)); }

// Products depend only on the distance, and lengths are preserved.
TEST(Rotated, TellsDistancesApart) {
  const Tensor q = ops::random_tensor({1, 1, 1, 6}, 1), k = ops::random_tensor({1, 1, 1, 6}, 2);
  const Tensor at_all = rotated(q.expand({1, 40, 1, 6})), keys = rotated(k.expand({1, 40, 1, 6}));
  const Tensor scores = at::matmul(at_all[0].squeeze(1), keys[0].squeeze(1).t());
  EXPECT_NEAR(scores[3][10].item<double>(), scores[30][37].item<double>(), 1e-6);
  EXPECT_GT(std::abs((scores[3][10] - scores[3][11]).item<double>()), 1e-3);
  EXPECT_NEAR(at_all[0][39].norm().item<double>(), q.norm().item<double>(), 1e-6);
  EXPECT_TRUE(at::equal(at_all[0][0], q[0][0])) << "position 0 is not turned";
  ops::expect_gradient_is_slope([](const std::vector<Tensor>& in) { return rotated(in[0]); },
                                {ops::random_tensor({2, 3, 2, 4}, 3)});
}

TEST(Rotated, TurnsByAnglesOfItsOwnDtype) {
  const int64_t length = 4000;
  const Tensor x_BLHE = at::ones({1, length, 1, 2}, at::kDouble);  // turned by p radians
  const Tensor y_LE = rotated(x_BLHE)[0].squeeze(1),
               y32_LE = rotated(x_BLHE.to(at::kFloat))[0].squeeze(1);
  EXPECT_EQ(y_LE.scalar_type(), at::kDouble);
  for (const int64_t p : {1, 1000, 3999}) {
    const auto angle = static_cast<double>(p);
    const double expected[] = {std::cos(angle) - std::sin(angle),
                               std::sin(angle) + std::cos(angle)};
    for (const int64_t c : {0, 1}) {
      EXPECT_NEAR(y_LE[p][c].item<double>(), expected[c], 1e-15) << p;
      EXPECT_NEAR(y32_LE[p][c].item<double>(), expected[c], 2e-7) << p;
    }
  }
}

}  // namespace
}  // namespace lra::layers
