#include "ops/adam.h"

#include <torch/optim/adamw.h>

#include <limits>

#include "base/parallel.h"
#include "ops/test_tensors.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr int64_t kCount = 1003;  // no multiple of a vector
const AdamOptions kOptions = {.learning_rate = 0.01, .weight_decay = 0.1};

struct State {
  explicit State(at::ScalarType type)
      : parameters(random_tensor({kCount}, 1, type)),
        m(at::zeros({kCount}, type)),
        v(at::zeros({kCount}, type)) {}
  Tensor parameters, m, v;
};

Tensor gradient_of_step(int64_t step) { return random_tensor({kCount}, 100 + step); }

TEST(Adam, FollowsItsEquationsInFloat32) {
  State state(at::kFloat);
  Tensor p = state.parameters.to(at::kDouble), m = at::zeros_like(p), v = at::zeros_like(p);
  constexpr double kGradScale = 0.7;
  for (int64_t step = 0; step < 10; ++step) {
    const Tensor g = gradient_of_step(step).to(at::kFloat);
    adam_step(state.parameters, g, state.m, state.v, kOptions, step, kGradScale);
    const Tensor scaled = kGradScale * g.to(at::kDouble);
    m = kOptions.beta1 * m + (1 - kOptions.beta1) * scaled;
    v = kOptions.beta2 * v + (1 - kOptions.beta2) * scaled * scaled;
    const Tensor m_hat = m / (1 - std::pow(kOptions.beta1, step + 1));
    const Tensor v_hat = v / (1 - std::pow(kOptions.beta2, step + 1));
    p = p - kOptions.learning_rate *
                (m_hat / (v_hat.sqrt() + kOptions.epsilon) + kOptions.weight_decay * p);
    EXPECT_LE(relative_error(state.parameters, p), 1e-5) << "step " << step;
    EXPECT_LE(relative_error(state.m, m), 1e-5) << "step " << step;
    EXPECT_LE(relative_error(state.v, v), 1e-5) << "step " << step;
  }
}

TEST(Adam, AgreesWithTheLibrarysAdamW) {
  State state(at::kDouble);
  Tensor theirs = state.parameters.clone().set_requires_grad(true);
  torch::optim::AdamW optimizer({theirs}, torch::optim::AdamWOptions(kOptions.learning_rate)
                                              .betas({kOptions.beta1, kOptions.beta2})
                                              .eps(kOptions.epsilon)
                                              .weight_decay(kOptions.weight_decay));
  for (int64_t step = 0; step < 20; ++step) {
    const Tensor g = gradient_of_step(step);
    theirs.mutable_grad() = g;
    optimizer.step();
    adam_step(state.parameters, g, state.m, state.v, kOptions, step, 1);
  }
  EXPECT_LE(relative_error(state.parameters, theirs), 1e-12);
}

TEST(Adam, ClipsByANormThatNobodyReads) {
  const Tensor g = gradient_of_step(0).to(at::kFloat), norm = norm_of(g);
  for (const double clip_norm : {0.5, 1e9, 0.0}) {
    State clipped(at::kFloat), scaled(at::kFloat);
    adam_step(clipped.parameters, g, clipped.m, clipped.v, kOptions, 0, 1, norm, clip_norm);
    const double scale = clip_norm == 0.5 ? clip_norm / gradient_norm(g) : 1;
    adam_step(scaled.parameters, g, scaled.m, scaled.v, kOptions, 0, scale);
    EXPECT_TRUE(at::equal(clipped.m, scaled.m) && at::equal(clipped.v, scaled.v)) << clip_norm;
    EXPECT_TRUE(at::equal(clipped.parameters, scaled.parameters)) << clip_norm;
  }
  State state(at::kFloat);
  EXPECT_THROW(adam_step(state.parameters, g, state.m, state.v, kOptions, 0, 1, {}, 1),
               CheckFailure);
}

TEST(Adam, RefusesStridedArrays) {
  State state(at::kFloat);
  Tensor strided = at::zeros({kCount, 2}).select(1, 0);
  EXPECT_THROW(adam_step(state.parameters, strided, state.m, state.v, kOptions, 0, 1),
               CheckFailure);
}

TEST(GradientNorm, IsTheEuclideanNorm) {
  const Tensor x = random_tensor({100003}, 2);
  EXPECT_NEAR(gradient_norm(x), x.norm().item<double>(), 1e-10);
  EXPECT_NEAR(gradient_norm(x.to(at::kFloat)), x.norm().item<double>(), 1e-5);
  EXPECT_EQ(gradient_norm(at::zeros({0})), 0);
}

TEST(GradientNorm, HasTheSameBitsAtAnyNumberOfThreads) {
  const Tensor x = random_tensor({1000003}, 3, at::kFloat);
  const int before = num_threads();
  set_num_threads(1);
  const double one = gradient_norm(x);
  set_num_threads(3);
  const double three = gradient_norm(x);
  set_num_threads(before);
  EXPECT_EQ(one, three);
}

TEST(GradientNorm, TellsOfNonFiniteGradients) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Tensor x = random_tensor({5000}, 4, at::kFloat);
    x[4321] = bad;
    EXPECT_FALSE(std::isfinite(gradient_norm(x)));
  }
}

}  // namespace
}  // namespace lra::ops
