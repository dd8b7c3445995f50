#include "kernels/pointwise/gate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

// Values and gates are halves of rows, as a linear layer leaves them.
template <typename T>
struct Halves {
  Halves(int64_t rows, int64_t columns)
      : rows(rows), columns(columns), x(2 * rows * columns), grad(rows * columns) {
    RandomStream random(static_cast<uint64_t>(rows * 1000 + columns));
    for (T& value : x) value = static_cast<float>(3 * random.normal());
    for (T& value : grad) value = static_cast<float>(random.normal());
  }
  void run(bool is_silu) {
    y.resize(grad.size());
    grad_x.assign(x.size(), T(7));
    const int64_t row = 2 * columns;
    const Gate<T> p{rows, columns, row, row, x.data(), x.data() + columns, is_silu};
    gate_forward(p, y.data());
    gate_backward(p, grad.data(), {row, row, grad_x.data(), grad_x.data() + columns});
    if (!is_silu) return;
    // Without values.
    alone.resize(grad.size());
    grad_alone.resize(grad.size());
    const Gate<T> q{rows, columns, 0, row, nullptr, x.data() + columns, true};
    gate_forward(q, alone.data());
    gate_backward(q, grad.data(), {0, columns, nullptr, grad_alone.data()});
  }
  int64_t rows, columns;
  std::vector<T> x, grad, y, grad_x, alone, grad_alone;
};

using GateTest = ImplementationTest;

template <typename T>
void expect_gate_agrees_with_double(double value, double gradient) {
  const auto expect_near = [](const std::vector<T>& got, const std::vector<double>& want,
                              double relative, double absolute) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], want[i], relative * std::abs(want[i]) + absolute) << i;
    }
  };
  for (const int64_t columns : {1, 15, 16, 17, 64, 100}) {
    for (const int64_t rows : {1, 3, 700}) {
      for (const bool is_silu : {false, true}) {
        Halves<T> got(rows, columns);
        Halves<double> want(rows, columns);
        want.x.assign(got.x.begin(), got.x.end());
        want.grad.assign(got.grad.begin(), got.grad.end());
        got.run(is_silu);
        want.run(is_silu);
        expect_near(got.y, want.y, value, 1e-30);
        expect_near(got.grad_x, want.grad_x, gradient, is_silu ? 1e-5 : 1e-30);
        expect_near(got.alone, want.alone, value, 1e-30);
        expect_near(got.grad_alone, want.grad_alone, gradient, 2e-6);
      }
    }
  }
}

TEST_P(GateTest, AgreesWithDouble) {
  expect_gate_agrees_with_double<float>(5e-7 * 3, 1e-6 * 3);
  expect_gate_agrees_with_double<Bf16>(0x1p-8, 0x1p-8);
}

TEST_P(GateTest, OpensAndClosesWithoutOverflowAndLetsNaNThrough) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> value = {2, 2, 2, 2, nan}, gate = {3e38f, -3e38f, 0, nan, 1};
  const std::vector<float> ones(5, 1);
  std::vector<float> y(5), grad_value(5), grad_gate(5);
  const Gate<float> p{1, 5, 5, 5, value.data(), gate.data()};
  gate_forward(p, y.data());
  gate_backward(p, ones.data(), {5, 5, grad_value.data(), grad_gate.data()});
  EXPECT_EQ(y[0], 2);
  EXPECT_NEAR(y[1], 0, 1e-30);
  EXPECT_EQ(y[2], 1);
  EXPECT_EQ(grad_gate[2], 0.5f);
  EXPECT_NEAR(grad_gate[0], 0, 1e-30);
  EXPECT_NEAR(grad_gate[1], 0, 1e-30);
  for (const float each : {y[3], y[4], grad_value[3], grad_gate[4]}) EXPECT_TRUE(std::isnan(each));
}

LRA_INSTANTIATE_IMPLEMENTATIONS(GateTest, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
