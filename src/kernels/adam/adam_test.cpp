#include "kernels/adam/adam.h"

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

template <typename T>
std::vector<T> random_values(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<T> x(count);
  for (T& value : x) value = static_cast<float>(random.normal());
  return x;
}

// The state of an optimizer after some steps with random gradients.
template <typename T>
struct Trained {
  std::vector<T> p, m, v;

  template <typename Step>
  Trained(int64_t count, const Step& adam, AdamStep settings)
      : p(random_values<T>(count, 1)), m(count, 0), v(count, 0) {
    for (settings.step = 0; settings.step < 4; ++settings.step) {
      const auto gradients = random_values<T>(count, 10 + settings.step);
      adam(count, p.data(), gradients.data(), m.data(), v.data(), settings);
    }
  }
};

const AdamStep kSettings{.learning_rate = 0.05, .weight_decay = 0.1, .grad_scale = 0.25};

using AdamFloat = ImplementationTest;
using SumOfSquares = ImplementationTest;

TEST(AdamRef, FirstStepMovesByTheLearningRateAgainstTheGradient) {
  // m_hat = g and v_hat = g^2 after one step, so the move is the rate times the sign of g.
  std::vector<double> p = {1, 1, 1}, m(3, 0), v(3, 0);
  const std::vector<double> gradients = {5, -0.001, 0};
  ref::adam_step<double>(3, p.data(), gradients.data(), m.data(), v.data(),
                         {.learning_rate = 0.5, .weight_decay = 0.1});
  EXPECT_NEAR(p[0], 1 - 0.5 - 0.05, 1e-5);
  EXPECT_NEAR(p[1], 1 + 0.5 - 0.05, 1e-5);
  EXPECT_NEAR(p[2], 1 - 0.05, 1e-12);
}

TEST(AdamRef, MatchesTheFormulasOverSeveralSteps) {
  const double b1 = 0.9, b2 = 0.98, eps = 1e-9, g[4] = {0.5, -2, 0.1, 1};
  double p = 0.3, m = 0, v = 0;
  std::vector<double> got_p = {p}, got_m = {0}, got_v = {0};
  for (int t = 0; t < 4; ++t) {
    AdamStep step = kSettings;
    step.step = t;
    ref::adam_step(1, got_p.data(), &g[t], got_m.data(), got_v.data(), step);
    const double scaled = 0.25 * g[t];
    m = b1 * m + (1 - b1) * scaled;
    v = b2 * v + (1 - b2) * scaled * scaled;
    const double update =
        m / (1 - std::pow(b1, t + 1)) / (std::sqrt(v / (1 - std::pow(b2, t + 1))) + eps);
    p -= 0.05 * update + 0.05 * 0.1 * p;
  }
  EXPECT_NEAR(got_p[0], p, 1e-14);
  EXPECT_NEAR(got_m[0], m, 1e-14);
  EXPECT_NEAR(got_v[0], v, 1e-14);
}

TEST_P(AdamFloat, KeepsTheErrorContract) {
  for (const int64_t count : {1, 15, 16, 17, 1000, 40001}) {
    const Trained<float> got(count, adam_step<float>, kSettings);
    const Trained<double> want(count, ref::adam_step<double>, kSettings);
    for (int64_t n = 0; n < count; ++n) {
      EXPECT_NEAR(got.p[n], want.p[n], 1e-6 * std::max(1.0, std::abs(want.p[n])));
      EXPECT_NEAR(got.m[n], want.m[n], 1e-6);
      EXPECT_NEAR(got.v[n], want.v[n], 1e-6);
    }
  }
}

TEST_P(AdamFloat, GivesTheSameBitsAtAnyNumberOfThreads) {
  const int before = num_threads();
  set_num_threads(1);
  const Trained<float> one(100'003, adam_step<float>, kSettings);
  set_num_threads(5);
  const Trained<float> five(100'003, adam_step<float>, kSettings);
  set_num_threads(before);
  EXPECT_EQ(one.p, five.p);
  EXPECT_EQ(one.m, five.m);
  EXPECT_EQ(one.v, five.v);
}

TEST(Adam, RefusesSettingsOutsideTheContract) {
  float p = 0, g = 0, m = 0, v = 0;
  EXPECT_THROW(adam_step(1, &p, &g, &m, &v, {.step = -1}), CheckFailure);
  EXPECT_THROW(adam_step(1, &p, &g, &m, &v, {.beta2 = 1}), CheckFailure);
}

TEST_P(SumOfSquares, MatchesTheReferenceAtAnyLength) {
  for (const int64_t count : {0, 1, 17, 8191, 8192, 8193, 100'001}) {
    const auto x = random_values<float>(count, 3);
    double want = 0;
    for (const float value : x) want += double{value} * value;
    EXPECT_NEAR(sum_of_squares(count, x.data()).sum, want, 1e-12 * want);
    EXPECT_NEAR(ref::sum_of_squares(count, x.data()).sum, want, 1e-12 * want);
    EXPECT_TRUE(sum_of_squares(count, x.data()).finite);
  }
}

TEST_P(SumOfSquares, FindsEveryValueThatIsNotFinite) {
  std::vector<float> x(20'001, 3e38f);
  EXPECT_TRUE(sum_of_squares<float>(20'001, x.data()).finite);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const int64_t at : {0, 9000, 20'000}) {
      const float kept = x[at];
      x[at] = bad;
      EXPECT_FALSE(sum_of_squares<float>(20'001, x.data()).finite);
      EXPECT_FALSE(ref::sum_of_squares<float>(20'001, x.data()).finite);
      x[at] = kept;
    }
  }
}

TEST_P(SumOfSquares, GivesTheSameBitsAtAnyNumberOfThreads) {
  const auto x = random_values<float>(300'001, 4);
  const int before = num_threads();
  set_num_threads(1);
  const double one = sum_of_squares(300'001, x.data()).sum;
  set_num_threads(5);
  const double five = sum_of_squares(300'001, x.data()).sum;
  set_num_threads(before);
  EXPECT_EQ(one, five);
}

LRA_INSTANTIATE_IMPLEMENTATIONS(AdamFloat, Isa::kRef, LRA_VECTOR_ISAS);
LRA_INSTANTIATE_IMPLEMENTATIONS(SumOfSquares, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
