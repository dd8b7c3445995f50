// The oracle of LinOSS: its oscillators, one position after another.
#include <cmath>

#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// The position of each oscillator [B, L, P], complex, from forces [B, L, P]; 0 at padding.
Tensor positions_of(const Tensor& force, const Tensor& valid_BL, const Tensor& dt, const Tensor& a,
                    bool is_implicit) {
  Tensor z = at::zeros_like(force.select(1, 0)), x = z;
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < force.size(1); ++t) {
    const Tensor is_there = valid_BL.select(1, t).unsqueeze(1), f = force.select(1, t);
    Tensor next_z = z + dt * (f - a * x), next_x;
    if (is_implicit) {
      const Tensor s = 1 / (1 + dt * dt * a);
      next_x = s * (x + dt * z + dt * dt * f);
      next_z = s * next_z;
    } else {
      next_x = x + dt * next_z;
    }
    z = at::where(is_there, next_z, z);
    x = at::where(is_there, next_x, x);
    rows.push_back(at::where(is_there, x, at::zeros_like(x)));
  }
  return at::stack(rows, 1);
}

Tensor linoss(const OracleInput& in) {
  const auto setting = [&](const char* name) {
    return std::get<std::string>(kLinoss.resolve(in.config).find(name)->value);
  };
  const bool is_implicit = setting("discretization") == "im";
  const auto& of = in.parameters;
  const Tensor a = of.at("a").relu(), dt = of.at("step").sigmoid();
  const Tensor valid = in.valid_BL.to(at::kBool);
  const Tensor b = complex_planes(of.at("b"), 0), c = complex_planes(of.at("c"), 2);
  const Tensor u = in.x_BLD * valid.unsqueeze(2);
  const Tensor force = at::matmul(at::complex(u, at::zeros_like(u)), b.t());
  Tensor y = of.at("skip") * u;
  for (int64_t k = 0; k < c.size(1); ++k) {
    const auto turned = [&](const Tensor& t) { return k == 1 ? t.flip(1) : t; };
    const Tensor x = turned(positions_of(turned(force), turned(valid), dt, a, is_implicit));
    y = y + at::real(at::matmul(x, c.select(1, k).t()));
  }
  return gated_output(in, y, setting("output"));
}

const ConformanceRow kLinossRow{"linoss", linoss, "states = 5", 0};

TEST(Linoss, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"states = 1\nbidirectional = false\noutput = 'none'",
        "states = 17\ndiscretization = 'imex'",
        "states = 6\ndiscretization = 'imex'\nbidirectional = false\noutput = 'half_glu1'"}) {
    expect_variant_agrees(kLinoss, linoss, settings);
  }
}

std::shared_ptr<SequenceLayer> linoss_of(const std::string& settings, int64_t dim = 4) {
  return kLinoss.make(
      layers::Initializer(1), parse_toml(settings, "model.toml"),
      {.model_dim = dim, .attention = {.heads = 1, .head_dim = dim}, .max_length = 8});
}

// 2 P + 4 P D + D with one direction, and the gate.
TEST(Linoss, HasThePublishedNumberOfParameters) {
  int64_t numbers = 0;
  const auto layer = linoss_of("states = 128\nbidirectional = false\noutput = 'none'", 128);
  for (const Tensor& t : layer->parameters()) numbers += t.numel();
  EXPECT_EQ(numbers, 2 * 128 + 4 * 128 * 128 + 128);
}

TEST(Linoss, StartsWithFrequenciesAndStepsOfTheUnitInterval) {
  const auto layer = linoss_of("states = 4000");
  for (const char* name : {"a", "step"}) {
    const Tensor t = layer->named_parameters()[name].detach();
    EXPECT_GE(t.min().item<double>(), 0) << name;
    EXPECT_LE(t.max().item<double>(), 1) << name;
    EXPECT_NEAR(t.mean().item<double>(), 0.5, 0.02) << name;
  }
}

// At A = 0, where an oscillator has one eigenvalue twice, and above 4 / dt^2, where IMEX explodes.
TEST(Linoss, StaysFiniteWhereItsModesAreNotDistinct) {
  for (const char* settings : {"discretization = 'im'", "discretization = 'imex'"}) {
    const auto layer = linoss_of(settings);
    for (const double a : {-1.0, 0.0, 1e-12, 100.0}) {
      {
        const at::NoGradGuard no_grad;
        layer->named_parameters()["a"].fill_(a);
      }
      const Tensor u = at::ones({1, 2000, 4}).set_requires_grad(true);
      const Tensor y = layer->forward(u, {});
      y.sum().backward();
      EXPECT_TRUE(y.isfinite().all().item<bool>()) << settings << " " << a;
      EXPECT_TRUE(u.grad().isfinite().all().item<bool>()) << settings << " " << a;
      EXPECT_TRUE(layer->named_parameters()["a"].grad().isfinite().all().item<bool>());
    }
  }
}

TEST(Linoss, PassesNaNOn) {
  const auto layer = linoss_of("output = 'none'");
  const at::NoGradGuard no_grad;
  layer->named_parameters()["a"][3].fill_(std::nan(""));
  EXPECT_FALSE(layer->forward(at::ones({1, 5, 4}), {}).isfinite().all().item<bool>());
}

}  // namespace
}  // namespace lra::mixers
