#include "kernels/pointwise/layer_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/choice.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

constexpr double kEps = 1e-6;

template <typename T>
struct Case {
  using W = Wide<T>;

  Case(int64_t rows, int64_t columns) : rows(rows), columns(columns) {
    RandomStream random(static_cast<uint64_t>(rows * 1000 + columns));
    const auto fill = [&](auto& values, int64_t count, double centre) {
      values.resize(static_cast<size_t>(count));
      for (auto& value : values) value = static_cast<float>(centre + random.normal());
    };
    fill(grad, rows * columns, 0);
    fill(x, rows * columns, 0.5);
    fill(gamma, columns, 1);
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0, squares = 0;
      for (int64_t c = 0; c < columns; ++c) sum += double{x[r * columns + c]};
      const double centre = sum / static_cast<double>(columns);
      for (int64_t c = 0; c < columns; ++c)
        squares += std::pow(double{x[r * columns + c]} - centre, 2);
      mean.push_back(static_cast<W>(centre));
      rstd.push_back(static_cast<W>(1 / std::sqrt(squares / static_cast<double>(columns) + kEps)));
    }
    dx.resize(x.size());
    grad_gamma.resize(gamma.size());
    grad_beta.resize(gamma.size());
  }
  // The same numbers in double.
  explicit Case(const Case<Bf16>& other) { copy(other); }
  explicit Case(const Case<float>& other) { copy(other); }

  LayerNormBackward<T> problem() {
    LayerNormBackward<T> p{
        rows,        columns,      grad.data(), x.data(),          mean.data(),
        rstd.data(), gamma.data(), dx.data(),   grad_gamma.data(), grad_beta.data()};
    if (!beside.empty()) p.beside = beside.data();
    return p;
  }
  // A gradient that comes with that of x.
  void add_beside() {
    for (size_t n = 0; n < x.size(); ++n) beside.push_back(x[(n * 7 + 3) % x.size()]);
  }

  int64_t rows = 0, columns = 0;
  std::vector<T> grad, x, dx, beside;
  std::vector<W> mean, rstd, gamma, grad_gamma, grad_beta;

 private:
  template <typename Other>
  void copy(const Other& other) {
    rows = other.rows;
    columns = other.columns;
    const auto widen = [](const auto& from, auto& to) { to.assign(from.begin(), from.end()); };
    widen(other.grad, grad);
    widen(other.x, x);
    widen(other.beside, beside);
    widen(other.mean, mean);
    widen(other.rstd, rstd);
    widen(other.gamma, gamma);
    dx.resize(x.size());
    grad_gamma.resize(gamma.size());
    grad_beta.resize(gamma.size());
  }
};

template <typename T>
void expect_within_the_contract(Case<T>& got) {
  Case<double> want(got);
  layer_norm_backward(want.problem());
  const double narrow = std::is_same_v<T, Bf16> ? 0x1p-8 : 0;
  for (int64_t r = 0; r < got.rows; ++r) {
    double most = 0;
    for (int64_t c = 0; c < got.columns; ++c) {
      most = std::max(most, std::abs(want.grad[r * got.columns + c] * want.gamma[c]));
    }
    for (int64_t c = 0; c < got.columns; ++c) {
      const int64_t n = r * got.columns + c;
      const double beside = want.beside.empty() ? 0 : 0x1p-24;
      const double bound = 1e-6 * want.rstd[r] * most + (beside + narrow) * std::abs(want.dx[n]);
      ASSERT_NEAR(double{got.dx[n]}, want.dx[n], bound) << got.rows << " " << got.columns;
    }
  }
  const double chain = (kNormRows + static_cast<double>(got.rows) / kNormRows) * 0x1p-24;
  for (int64_t c = 0; c < got.columns; ++c) {
    double gamma_size = 0, beta_size = 0;
    for (int64_t r = 0; r < got.rows; ++r) {
      const int64_t n = r * got.columns + c;
      gamma_size += std::abs(want.grad[n] * (want.x[n] - want.mean[r]) * want.rstd[r]);
      beta_size += std::abs(want.grad[n]);
    }
    ASSERT_NEAR(got.grad_gamma[c], want.grad_gamma[c], chain * gamma_size);
    ASSERT_NEAR(got.grad_beta[c], want.grad_beta[c], chain * beta_size);
  }
}

// The forward pass of the case's x.
template <typename T>
struct Forward {
  using W = Wide<T>;

  explicit Forward(const Case<T>& c) : y(c.x.size()), mean(c.mean.size()), rstd(c.mean.size()) {
    for (size_t n = 0; n < c.gamma.size(); ++n) beta.push_back(0.25f * static_cast<float>(n % 7));
    problem = {c.rows,      c.columns, kEps,        c.x.data(), c.gamma.data(),
               beta.data(), y.data(),  mean.data(), rstd.data()};
  }

  std::vector<T> y;
  std::vector<W> beta, mean, rstd;
  LayerNormForward<T> problem;
};

template <typename T>
void expect_forward_within_the_contract(const Case<T>& c, const Forward<T>& got) {
  const Case<double> in_double(c);
  Forward<double> want(in_double);
  layer_norm_forward(want.problem);
  const double narrow = std::is_same_v<T, Bf16> ? 0x1p-8 : 0;
  const double k = 1e-6 * (1 + static_cast<double>(c.columns) / 512);
  for (int64_t r = 0; r < c.rows; ++r) {
    double most = 0, away = 1e-30;
    for (int64_t n = r * c.columns; n < (r + 1) * c.columns; ++n) {
      most = std::max(most, std::abs(in_double.x[n]));
      away = std::max(away, std::abs(in_double.x[n] - want.mean[r]));
    }
    ASSERT_NEAR(double{got.mean[r]}, want.mean[r], k * most);
    const double ratio = most / away;
    ASSERT_NEAR(double{got.rstd[r]}, want.rstd[r], k * (1 + k * ratio * ratio) * want.rstd[r]);
    for (int64_t n = r * c.columns; n < (r + 1) * c.columns; ++n) {
      const double gamma = std::abs(in_double.gamma[n % c.columns]), y = std::abs(want.y[n]);
      const double bound = 2 * k * (most * want.rstd[r] * gamma + y) + narrow * y;
      ASSERT_NEAR(double{got.y[n]}, want.y[n], bound) << c.rows << " " << c.columns;
    }
  }
}

using LayerNorm = ImplementationTest;

template <typename T>
void expect_forward_contract() {
  for (const double centre : {0.0, 1000.0}) {
    for (const auto& [rows, columns] :
         {std::pair{1, 1}, {2, 15}, {127, 64}, {128, 17}, {129, 256}, {300, 32}, {3, 1025}}) {
      Case<T> c(rows, columns);
      for (T& x : c.x) x = static_cast<float>(float{x} + centre);
      Forward<T> got(c), plain(c);
      layer_norm_forward(got.problem);
      expect_forward_within_the_contract(c, got);
      ref::layer_norm_rows(plain.problem, 0, rows);
      expect_forward_within_the_contract(c, plain);
    }
  }
}

TEST_P(LayerNorm, KeepsTheErrorContractForward) {
  expect_forward_contract<float>();
  expect_forward_contract<Bf16>();
}

TEST_P(LayerNorm, KeepsTheErrorContractForARowOfOneNumber) {
  Case<float> c(3, 4096);
  std::fill_n(c.x.begin() + c.columns, c.columns, 1000.1f);
  Forward<float> got(c);
  layer_norm_forward(got.problem);
  expect_forward_within_the_contract(c, got);
}

TEST_P(LayerNorm, KeepsARowThatIsNotFiniteToItself) {
  Case<float> c(5, 40);
  Forward<float> clean(c), got(c);
  layer_norm_forward(clean.problem);
  c.x[2 * 40 + 7] = std::numeric_limits<float>::infinity();
  layer_norm_forward(got.problem);
  for (size_t n = 0; n < c.x.size(); ++n) {
    if (n / 40 == 2) {
      EXPECT_TRUE(std::isnan(got.y[n])) << n;
    } else {
      EXPECT_EQ(got.y[n], clean.y[n]) << n;
    }
  }
}

TEST_P(LayerNorm, TakesNoRows) {
  const Case<float> c(0, 40);
  Forward<float> got(c);
  layer_norm_forward(got.problem);
}

TEST_P(LayerNorm, GivesTheSameBitsForwardAtAnyNumberOfThreads) {
  const Case<float> c(2500, 40);
  Forward<float> one(c), five(c);
  const int before = num_threads();
  set_num_threads(1);
  layer_norm_forward(one.problem);
  set_num_threads(5);
  layer_norm_forward(five.problem);
  set_num_threads(before);
  EXPECT_EQ(one.y, five.y);
  EXPECT_EQ(one.mean, five.mean);
  EXPECT_EQ(one.rstd, five.rstd);
}

template <typename T>
void expect_contract() {
  for (const auto& [rows, columns] :
       {std::pair{1, 1}, {2, 15}, {127, 64}, {128, 17}, {129, 256}, {1000, 33}, {3, 1025}}) {
    Case<T> got(rows, columns), with_another(rows, columns);
    layer_norm_backward(got.problem());
    expect_within_the_contract(got);
    with_another.add_beside();
    layer_norm_backward(with_another.problem());
    expect_within_the_contract(with_another);
    Case<T> plain(std::min<int64_t>(rows, kNormRows), columns);
    ref::layer_norm_rows_backward(plain.problem(), 0, plain.rows, plain.grad_gamma.data(),
                                  plain.grad_beta.data());
    expect_within_the_contract(plain);
  }
}

TEST_P(LayerNorm, KeepsTheErrorContract) {
  expect_contract<float>();
  expect_contract<Bf16>();
}

template <typename T>
void expect_same_bits() {
  Case<T> one(2500, 40), five(2500, 40);
  const int before = num_threads();
  set_num_threads(1);
  layer_norm_backward(one.problem());
  set_num_threads(5);
  layer_norm_backward(five.problem());
  set_num_threads(before);
  EXPECT_EQ(one.grad_gamma, five.grad_gamma);
  EXPECT_EQ(one.grad_beta, five.grad_beta);
  for (size_t n = 0; n < one.dx.size(); ++n) ASSERT_EQ(float{one.dx[n]}, float{five.dx[n]});
}

TEST_P(LayerNorm, GivesTheSameBitsAtAnyNumberOfThreads) {
  expect_same_bits<float>();
  expect_same_bits<Bf16>();
}

template <typename T>
void expect_same_in_place(bool over_beside) {
  Case<T> apart(300, 50), in_place(300, 50);
  if (over_beside) apart.add_beside();
  if (over_beside) in_place.add_beside();
  layer_norm_backward(apart.problem());
  std::vector<T>& to = over_beside ? in_place.beside : in_place.grad;
  auto problem = in_place.problem();
  problem.dx = to.data();
  layer_norm_backward(problem);
  for (size_t n = 0; n < apart.dx.size(); ++n) ASSERT_EQ(float{apart.dx[n]}, float{to[n]});
}

TEST_P(LayerNorm, MayWriteOverAGradient) {
  for (const bool over_beside : {false, true}) {
    expect_same_in_place<float>(over_beside);
    expect_same_in_place<Bf16>(over_beside);
  }
}

// A row that is moved or scaled has the same output, so the gradient along either is 0.
TEST(LayerNormRef, GivesNoGradientAlongWhatItTakesAway) {
  Case<double> c(20, 30);
  layer_norm_backward(c.problem());
  for (int64_t r = 0; r < c.rows; ++r) {
    double along_ones = 0, along_x = 0;
    for (int64_t n = r * c.columns; n < (r + 1) * c.columns; ++n) {
      along_ones += c.dx[n];
      along_x += c.dx[n] * (c.x[n] - c.mean[r]);
    }
    EXPECT_NEAR(along_ones, 0, 1e-12);
    EXPECT_NEAR(along_x, 0, 1e-4);  // but for eps in the deviation
  }
}

LRA_INSTANTIATE_IMPLEMENTATIONS(LayerNorm, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
