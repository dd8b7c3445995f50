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
  void run() {
    y.resize(grad.size());
    grad_x.assign(x.size(), T(7));
    const Gate<T> p{rows, columns, 2 * columns, 2 * columns, x.data(), x.data() + columns};
    gate_forward(p, y.data());
    gate_backward(p, grad.data(), grad_x.data(), grad_x.data() + columns);
  }
  int64_t rows, columns;
  std::vector<T> x, grad, y, grad_x;
};

using GateTest = ImplementationTest;

template <typename T>
void expect_gate_agrees_with_double(double value, double gradient) {
  for (const int64_t columns : {1, 15, 16, 17, 64, 100}) {
    for (const int64_t rows : {1, 3, 700}) {
      Halves<T> got(rows, columns);
      Halves<double> want(rows, columns);
      want.x.assign(got.x.begin(), got.x.end());
      want.grad.assign(got.grad.begin(), got.grad.end());
      got.run();
      want.run();
      for (size_t i = 0; i < got.y.size(); ++i) {
        EXPECT_NEAR(got.y[i], want.y[i], value * std::abs(want.y[i]) + 1e-30) << i;
      }
      for (size_t i = 0; i < got.grad_x.size(); ++i) {
        EXPECT_NEAR(got.grad_x[i], want.grad_x[i], gradient * std::abs(want.grad_x[i]) + 1e-30);
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
  gate_backward(p, ones.data(), grad_value.data(), grad_gate.data());
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
