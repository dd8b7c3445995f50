#include "kernels/pointwise/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

constexpr Activation kAll[] = {Activation::kSigmoid,  Activation::kClosed, Activation::kSoftplus,
                               Activation::kPositive, Activation::kExp,    Activation::kFreshShare};

template <typename T>
struct Results {
  Results(Activation f, const std::vector<T>& x) : y(x.size()), grad_x(x.size(), T(1)) {
    const auto count = static_cast<int64_t>(x.size());
    activation_forward(f, count, x.data(), y.data());
    activation_backward(f, count, x.data(), grad_x.data(), grad_x.data());
  }
  std::vector<T> y, grad_x;
};

template <typename T>
void expect_near_double(double value, double gradient) {
  for (const int64_t count : {0, 1, 15, 16, 17, 100, 40001}) {
    std::vector<T> x;
    for (int64_t n = 0; n < count; ++n) x.push_back(T(static_cast<float>(12 * std::sin(0.7 * n))));
    for (const Activation f : kAll) {
      if (f == Activation::kFreshShare) {
        for (T& value : x) value = -std::abs(static_cast<float>(value));
      }
      const Results<T> got(f, x);
      const Results<double> want(f, std::vector<double>(x.begin(), x.end()));
      for (size_t n = 0; n < x.size(); ++n) {
        ASSERT_NEAR(got.y[n], want.y[n], value * std::abs(want.y[n])) << int(f) << " " << x[n];
        ASSERT_NEAR(got.grad_x[n], want.grad_x[n], gradient * std::abs(want.grad_x[n]))
            << int(f) << " " << x[n];
      }
    }
  }
}

using ActivationTest = ImplementationTest;

TEST_P(ActivationTest, AgreesWithDouble) {
  expect_near_double<float>(1.5e-6, 3e-6);
  expect_near_double<Bf16>(0x1p-8, 0x1p-8);
}

TEST_P(ActivationTest, KnowsTheValuesAtTheEndsAndAtZero) {
  const float most = std::numeric_limits<float>::max(), nan = std::nanf("");
  const std::vector<float> x = {0, -most, most, nan};
  const float values[][3] = {{0.5f, 0, 1},    {0.5f, 1, 0}, {std::log(2.0f), 0, most},
                             {0.5f, 0, most}, {1, 0},       {5e-4f, 1}};
  const float slopes[][3] = {{0.25f, 0, 0}, {-0.25f, 0, 0}, {0.5f, 0, 1},
                             {1, 0, 1},     {1, 0},         {0, 0}};
  for (const Activation f : kAll) {
    const Results<float> got(f, x);
    const size_t known = f == Activation::kExp || f == Activation::kFreshShare ? 2 : 3;
    for (size_t n = 0; n < known; ++n) {
      EXPECT_NEAR(got.y[n], values[int(f)][n], 1e-6 * std::abs(values[int(f)][n]) + 1e-30);
      EXPECT_NEAR(got.grad_x[n], slopes[int(f)][n], 1e-6);
    }
    EXPECT_TRUE(std::isnan(got.y[3])) << int(f);
  }
  const Results<float> largest(Activation::kExp, {88.7f, 88.8f});
  EXPECT_NEAR(largest.y[0], std::exp(88.7), 1e-5 * std::exp(88.7));
  EXPECT_TRUE(std::isinf(largest.y[1]));
}

LRA_INSTANTIATE_IMPLEMENTATIONS(ActivationTest, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
