#include "kernels/pointwise/batch_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/choice.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

constexpr double kEps = 1e-5, kChain = kBatchNormRows * 0x1p-24;

// A matrix, about three quarters of whose rows are valid if `is_ragged`.
template <typename T>
struct BatchNormCase {
  using W = Wide<T>;

  BatchNormCase(int64_t rows, int64_t columns, bool is_ragged, double centre = 0.5)
      : rows(rows), columns(columns) {
    RandomStream random(static_cast<uint64_t>(rows * 1000 + columns));
    const auto fill = [&](auto& values, int64_t count, double around) {
      values.resize(static_cast<size_t>(count));
      for (auto& value : values) value = static_cast<float>(around + random.normal());
    };
    fill(x, rows * columns, centre);
    fill(grad, rows * columns, 0);
    fill(gamma, columns, 1);
    fill(beta, columns, 0);
    if (is_ragged) {
      for (int64_t r = 0; r < rows; ++r) valid.push_back(random.below(4) > 0);
    }
    allocate();
  }
  // The same numbers in another type.
  template <typename Other>
  explicit BatchNormCase(const BatchNormCase<Other>& other)
      : rows(other.rows), columns(other.columns), valid(other.valid) {
    const auto convert = [](const auto& from, auto& to) { to.assign(from.begin(), from.end()); };
    convert(other.x, x);
    convert(other.grad, grad);
    convert(other.gamma, gamma);
    convert(other.beta, beta);
    allocate();
    convert(other.mean, mean);
    convert(other.variance, variance);
    count = other.count;
  }

  const uint8_t* valid_rows() const { return valid.empty() ? nullptr : valid.data(); }
  bool is_valid(int64_t row) const { return valid.empty() || valid[static_cast<size_t>(row)] != 0; }
  void run_forward() {
    count = batch_norm_forward<T>({rows, columns, kEps, x.data(), valid_rows(), gamma.data(),
                                   beta.data(), y.data(), mean.data(), variance.data()});
  }
  void run_backward() {
    batch_norm_backward<T>({rows, columns, kEps, grad.data(), x.data(), valid_rows(), count,
                            mean.data(), variance.data(), gamma.data(), dx.data(),
                            grad_gamma.data(), grad_beta.data()});
  }

  int64_t rows = 0, columns = 0, count = 0;
  std::vector<T> x, grad, y, dx;
  std::vector<W> gamma, beta, mean, variance, grad_gamma, grad_beta;
  std::vector<uint8_t> valid;

 private:
  void allocate() {
    for (auto* each : {&y, &dx}) each->assign(x.size(), T(9.0f));
    for (auto* each : {&mean, &variance, &grad_gamma, &grad_beta}) each->assign(gamma.size(), 9);
  }
};

// The definition of a column, in double.
struct Moments {
  double count = 0, mean = 0, variance = 0, largest = 0;
};
template <typename T>
Moments moments_of(const BatchNormCase<T>& p, int64_t c) {
  Moments of;
  const auto for_valid = [&](const auto& body) {
    for (int64_t r = 0; r < p.rows; ++r) {
      if (p.is_valid(r)) body(double{p.x[r * p.columns + c]});
    }
  };
  for_valid([&](double x) { of.count += 1, of.largest = std::max(of.largest, std::abs(x)); });
  for_valid([&](double x) { of.mean += x / of.count; });
  for_valid([&](double x) { of.variance += (x - of.mean) * (x - of.mean) / of.count; });
  return of;
}

template <typename T>
void expect_forward_within_the_contract(BatchNormCase<T> p) {
  p.run_forward();
  const double narrow = std::is_same_v<T, Bf16> ? 0x1p-8 : 0;
  for (int64_t c = 0; c < p.columns; ++c) {
    const Moments want = moments_of(p, c);
    const double deviation = std::sqrt(want.variance), of_mean = kChain * want.largest;
    ASSERT_EQ(static_cast<double>(p.count), want.count);
    ASSERT_NEAR(p.mean[c], want.mean, of_mean) << p.rows << " x " << p.columns;
    ASSERT_NEAR(p.variance[c], want.variance,
                2 * deviation * (kChain * deviation + of_mean) + of_mean * of_mean);
    const double slope = p.gamma[c] / std::sqrt(double{p.variance[c]} + kEps);
    for (int64_t r = 0; r < p.rows; ++r) {
      const int64_t n = r * p.columns + c;
      if (!p.is_valid(r)) {
        ASSERT_EQ(float{p.y[n]}, 0);
        continue;
      }
      const double scaled = (double{p.x[n]} - double{p.mean[c]}) * slope, y = scaled + p.beta[c];
      ASSERT_NEAR(double{p.y[n]}, y,
                  1e-6 * (std::abs(scaled) + std::abs(p.beta[c])) + narrow * std::abs(y));
    }
  }
}

template <typename T>
void expect_backward_within_the_contract(BatchNormCase<T> p) {
  p.run_forward();
  BatchNormCase<double> want(p);
  p.run_backward();
  const double narrow = std::is_same_v<T, Bf16> ? 0x1p-8 : 0;
  const auto count = static_cast<double>(std::max<int64_t>(1, p.count));
  for (int64_t c = 0; c < p.columns; ++c) {
    const double rstd = 1 / std::sqrt(want.variance[c] + kEps), slope = want.gamma[c] * rstd;
    double gamma = 0, beta = 0, gamma_size = 0, beta_size = 0;
    for (int64_t r = 0; r < p.rows; ++r) {
      if (!p.is_valid(r)) continue;
      const int64_t n = r * p.columns + c;
      const double xhat = (want.x[n] - want.mean[c]) * rstd;
      gamma += want.grad[n] * xhat, beta += want.grad[n];
      gamma_size += std::abs(want.grad[n] * xhat), beta_size += std::abs(want.grad[n]);
    }
    ASSERT_NEAR(p.grad_gamma[c], gamma, kChain * gamma_size) << p.rows << " x " << p.columns;
    ASSERT_NEAR(p.grad_beta[c], beta, kChain * beta_size);
    for (int64_t r = 0; r < p.rows; ++r) {
      const int64_t n = r * p.columns + c;
      const double xhat = (want.x[n] - want.mean[c]) * rstd;
      const double dx =
          p.is_valid(r) ? slope * (want.grad[n] - beta / count - xhat * gamma / count) : 0;
      const double size = std::abs(slope) * (std::abs(want.grad[n]) + beta_size / count +
                                             std::abs(xhat) * gamma_size / count);
      ASSERT_NEAR(double{p.dx[n]}, dx, kChain * size + narrow * std::abs(dx));
    }
  }
}

using BatchNormKernel = ImplementationTest;

template <typename T>
void expect_contract() {
  for (const auto& [rows, columns] :
       {std::pair{1, 1}, {2, 15}, {127, 64}, {128, 17}, {129, 256}, {1000, 33}, {3, 1025}}) {
    for (const bool is_ragged : {false, true}) {
      const BatchNormCase<T> p(rows, columns, is_ragged);
      expect_forward_within_the_contract(p);
      expect_backward_within_the_contract(p);
    }
  }
  expect_forward_within_the_contract(BatchNormCase<T>(700, 20, true, 1000));
}

TEST_P(BatchNormKernel, KeepsTheErrorContract) {
  expect_contract<float>();
  expect_contract<Bf16>();
}

TEST(BatchNormKernelRef, IsExactInDouble) {
  BatchNormCase<double> p(300, 7, true);
  p.run_forward();
  for (int64_t c = 0; c < p.columns; ++c) {
    EXPECT_NEAR(p.mean[c], moments_of(p, c).mean, 1e-14);
    EXPECT_NEAR(p.variance[c], moments_of(p, c).variance, 1e-13);
  }
}

TEST_P(BatchNormKernel, TakesNoValidRow) {
  BatchNormCase<float> p(5, 20, true);
  std::fill(p.valid.begin(), p.valid.end(), uint8_t{0});
  p.run_forward();
  p.run_backward();
  EXPECT_EQ(p.count, 0);
  for (const auto* each : {&p.y, &p.dx}) EXPECT_EQ(*each, std::vector<float>(100));
  for (const auto* each : {&p.mean, &p.variance, &p.grad_gamma, &p.grad_beta}) {
    EXPECT_EQ(*each, std::vector<float>(20));
  }
}

TEST_P(BatchNormKernel, GivesTheSameBitsAtAnyNumberOfThreads) {
  BatchNormCase<float> one(2500, 40, true), five(one);
  const int before = num_threads();
  for (auto* p : {&one, &five}) {
    set_num_threads(p == &one ? 1 : 5);
    p->run_forward();
    p->run_backward();
  }
  set_num_threads(before);
  EXPECT_EQ(one.y, five.y);
  EXPECT_EQ(one.variance, five.variance);
  EXPECT_EQ(one.dx, five.dx);
  EXPECT_EQ(one.grad_gamma, five.grad_gamma);
}

LRA_INSTANTIATE_IMPLEMENTATIONS(BatchNormKernel, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
