#include "kernels/pointwise/pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/choice.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

const std::vector<int64_t> kCounts = {0, 1, 15, 16, 17, 127, 128, 129, 1023, 1024, 1025, 50000};
const Dropout kNone{};
const Dropout kSome{0.3, 99};

template <typename T>
std::vector<T> random_values(int64_t count, uint64_t seed, double size = 3) {
  RandomStream random(seed);
  std::vector<T> x(count);
  for (T& value : x) value = static_cast<float>(size * random.normal());
  return x;
}

using PointwiseFloat = ImplementationTest;

TEST(PointwiseRef, GeluHasKnownValues) {
  const std::vector<double> x = {0, 1, -1, 3, 20, -20};
  std::vector<double> y(x.size());
  ref::gelu_dropout<double>(6, x.data(), y.data(), kNone);
  // 0.5 (1 + tanh(0.79788456 * 1.044715)) = 0.84119199, and x - gelu(x) = -gelu(-x).
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], 0.8411919906082768, 1e-12);
  EXPECT_NEAR(y[2], 0.8411919906082768 - 1, 1e-12);
  EXPECT_NEAR(y[3], 2.9963627, 1e-6);
  EXPECT_EQ(y[4], 20);
  EXPECT_NEAR(y[5], 0, 1e-12);
}

TEST(PointwiseRef, GeluGradientMatchesCentralDifferences) {
  const int64_t count = 300;
  const auto x = random_values<double>(count, 1);
  const auto dy = random_values<double>(count, 2);
  std::vector<double> dx(count), above(count), below(count);
  ref::gelu_dropout_backward(count, x.data(), dy.data(), dx.data(),
                             /*y=*/static_cast<double*>(nullptr), kSome);
  const double step = 1e-5;
  auto moved = x;
  for (double& value : moved) value += step;
  ref::gelu_dropout(count, moved.data(), above.data(), kSome);
  for (double& value : moved) value -= 2 * step;
  ref::gelu_dropout(count, moved.data(), below.data(), kSome);
  for (int64_t n = 0; n < count; ++n) {
    EXPECT_NEAR(dx[n], dy[n] * (above[n] - below[n]) / (2 * step), 1e-8);
  }
}

TEST(PointwiseRef, DropsElementsAtTheRequestedRate) {
  const int64_t count = 1 << 18;
  const std::vector<double> ones(count, 1);
  std::vector<double> y(count);
  ref::apply_dropout(count, ones.data(), y.data(), kSome);
  int64_t dropped = 0;
  for (const double value : y) {
    dropped += value == 0;
    EXPECT_NEAR(value, value == 0 ? 0 : 1 / 0.7, 1e-4);
  }
  // Five standard deviations.
  EXPECT_NEAR(static_cast<double>(dropped) / count, 0.3, 5 * std::sqrt(0.21 / count));
}

TEST_P(PointwiseFloat, KeepsTheErrorContract) {
  for (const Dropout& dropout : {kNone, kSome}) {
    for (const int64_t count : kCounts) {
      const auto x = random_values<float>(count, 1), dy = random_values<float>(count, 2, 1);
      const std::vector<double> wide_x(x.begin(), x.end()), wide_dy(dy.begin(), dy.end());
      std::vector<float> got(count);
      std::vector<double> want(count);
      const auto expect_close = [&](double bound) {
        for (int64_t n = 0; n < count; ++n) {
          EXPECT_NEAR(got[n], want[n], bound * std::max(1.0, std::abs(wide_x[n]))) << n;
        }
      };
      gelu_dropout(count, x.data(), got.data(), dropout);
      ref::gelu_dropout(count, wide_x.data(), want.data(), dropout);
      expect_close(1e-6);
      dropout_add(count, dy.data(), x.data(), got.data(), dropout);
      ref::dropout_add(count, wide_dy.data(), wide_x.data(), want.data(), dropout);
      expect_close(1e-6);
      apply_dropout(count, x.data(), got.data(), dropout);
      ref::apply_dropout(count, wide_x.data(), want.data(), dropout);
      expect_close(1e-6);
      const std::vector<float> one(count, 1);
      const std::vector<double> wide_one(count, 1);
      gelu_dropout_backward<float>(count, x.data(), one.data(), got.data(), nullptr, dropout);
      ref::gelu_dropout_backward<double>(count, wide_x.data(), wide_one.data(), want.data(),
                                         nullptr, dropout);
      for (int64_t n = 0; n < count; ++n) EXPECT_NEAR(got[n], want[n], 2e-6) << n;
    }
  }
}

TEST_P(PointwiseFloat, StaysFiniteAtHugeValuesAndPassesNaNOn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {1e30f, -1e30f, 3e38f, -3e38f, 12, -12, nan};
  const std::vector<float> one(x.size(), 1);
  std::vector<float> y(x.size()), dx(x.size());
  gelu_dropout(7, x.data(), y.data(), kNone);
  gelu_dropout_backward<float>(7, x.data(), one.data(), dx.data(), nullptr, kNone);
  for (int n = 0; n < 6; n += 2) {
    EXPECT_EQ(y[n], x[n]);
    EXPECT_EQ(dx[n], 1);
    EXPECT_NEAR(y[n + 1] / x[n], 0, 1e-30);
    EXPECT_NEAR(dx[n + 1], 0, 1e-30);
  }
  EXPECT_TRUE(std::isnan(y[6]));
  EXPECT_TRUE(std::isnan(dx[6]));
}

// A pass over a part gives what the same elements get in a pass over all.
TEST(Pointwise, PartsGetTheDropoutOfTheirPlace) {
  const int64_t rows = 3, rest = 77, all = rows * kDropoutRowLength + rest;
  const auto x = random_values<float>(all, 1), dy = random_values<float>(all, 2);
  for (const bool reference : {false, true}) {
    const auto forward = reference ? ref::gelu_dropout<float> : gelu_dropout<float>;
    const auto backward =
        reference ? ref::gelu_dropout_backward<float> : gelu_dropout_backward<float>;
    std::vector<float> y(all), dx(all), again(all), part_y(all), part_dx(all);
    forward(all, x.data(), y.data(), kSome);
    backward(all, x.data(), dy.data(), dx.data(), again.data(), kSome);
    EXPECT_EQ(again, y);
    for (int64_t row = 0; row <= rows; ++row) {
      const int64_t first = row * kDropoutRowLength;
      const int64_t count = std::min(kDropoutRowLength, all - first);
      Dropout dropout = kSome;
      dropout.first_row = row;
      backward(count, x.data() + first, dy.data() + first, part_dx.data() + first,
               part_y.data() + first, dropout);
    }
    EXPECT_EQ(part_y, y);
    EXPECT_EQ(part_dx, dx);
  }
}

TEST(PointwiseBf16, IsTheFloatResultRounded) {
  const int64_t count = 5003;
  const auto x = random_values<float>(count, 7), other = random_values<float>(count, 8);
  const std::vector<Bf16> x16(x.begin(), x.end()), other16(other.begin(), other.end());
  const std::vector<float> wide_x(x16.begin(), x16.end()), wide(other16.begin(), other16.end());
  const auto expect_rounded = [&](const auto& call) {
    std::vector<float> want(count);
    std::vector<Bf16> got(count);
    call(wide_x.data(), wide.data(), want.data());
    call(x16.data(), other16.data(), got.data());
    for (int64_t n = 0; n < count; ++n) EXPECT_EQ(float{got[n]}, float{Bf16(want[n])}) << n;
  };
  for (const Dropout& dropout : {kNone, kSome}) {
    expect_rounded([&](auto* a, auto*, auto* y) { gelu_dropout(count, a, y, dropout); });
    expect_rounded([&](auto* a, auto* b, auto* y) {
      gelu_dropout_backward(count, a, b, y, decltype(y){}, dropout);
    });
    expect_rounded([&](auto* a, auto* b, auto* y) { dropout_add(count, b, a, y, dropout); });
    expect_rounded([&](auto* a, auto*, auto* y) { apply_dropout(count, a, y, dropout); });
    expect_rounded([&](auto* a, auto*, auto* y) { ref::gelu_dropout(count, a, y, dropout); });
    expect_rounded([&](auto* a, auto* b, auto* y) { ref::dropout_add(count, b, a, y, dropout); });
  }
}

TEST_P(PointwiseFloat, WritesNothingBeyondTheEnd) {
  for (const int64_t count : {1, 17, 1025}) {
    const std::vector<float> x(count + 64, 1);
    std::vector<float> y(count + 64, -7);
    gelu_dropout(count, x.data(), y.data(), kSome);
    for (size_t n = count; n < y.size(); ++n) EXPECT_EQ(y[n], -7);
  }
}

TEST_P(PointwiseFloat, GivesTheSameBitsAtAnyNumberOfThreads) {
  const int64_t count = 200'001;
  const auto x = random_values<float>(count, 5);
  const int before = num_threads();
  std::vector<float> one(count), five(count);
  set_num_threads(1);
  gelu_dropout(count, x.data(), one.data(), kSome);
  set_num_threads(5);
  gelu_dropout(count, x.data(), five.data(), kSome);
  set_num_threads(before);
  EXPECT_EQ(one, five);
}

TEST(Pointwise, WorksInPlace) {
  auto x = random_values<float>(5000, 6);
  std::vector<float> y(5000);
  gelu_dropout(5000, x.data(), y.data(), kSome);
  gelu_dropout(5000, x.data(), x.data(), kSome);
  EXPECT_EQ(x, y);
}

TEST(Pointwise, RefusesRatesOutsideTheContract) {
  float x = 0;
  EXPECT_THROW(apply_dropout(1, &x, &x, {1.0, 0}), CheckFailure);
  EXPECT_THROW(apply_dropout(1, &x, &x, {-0.1, 0}), CheckFailure);
}

LRA_INSTANTIATE_IMPLEMENTATIONS(PointwiseFloat, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
