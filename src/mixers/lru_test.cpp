// The dense oracle of LRU: a matrix of powers for each state, from the definition in complex
// numbers.
#include <numbers>

#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

Tensor lru(const OracleInput& in) {
  const auto exp = [&](const char* name) { return in.parameters.at(name).exp(); };
  const Tensor lambda = at::complex(-exp("nu_log"), exp("theta_log")).exp();
  const Tensor b = exp("gamma_log").unsqueeze(1) * complex_planes(in.parameters.at("b"), 0);
  const Tensor y = dense_state_space(in, lambda, b, complex_planes(in.parameters.at("c"), 2));
  return gated_output(in, y, std::get<std::string>(kLru.resolve(in.config).find("output")->value));
}

const ConformanceRow kLruRow{"lru", lru, "states = 5", 0};

TEST(Lru, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings : {"states = 1\nbidirectional = false\noutput = 'none'",
                               "states = 17\nr_min = 0.9\nr_max = 0.99\nmax_phase = 0.5"}) {
    expect_variant_agrees(kLru, lru, settings);
  }
}

std::shared_ptr<SequenceLayer> lru_of(const std::string& settings) {
  return kLru.make(layers::Initializer(1), parse_toml(settings, "model.toml"),
                   {.model_dim = 4, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

// Uniform by area: the mean of |lambda|^2 is that of the squared radii.
TEST(Lru, StartsOnItsRing) {
  const auto layer = lru_of("states = 4000\nr_min = 0.5\nr_max = 0.9\nmax_phase = 1.0");
  const auto exp = [&](const char* name) {
    return layer->named_parameters()[name].detach().to(at::kDouble).exp();
  };
  const Tensor size = (-exp("nu_log")).exp(), phase = exp("theta_log");
  EXPECT_GE(size.min().item<double>(), 0.4999);
  EXPECT_LE(size.max().item<double>(), 0.9001);
  EXPECT_NEAR(size.square().mean().item<double>(), (0.25 + 0.81) / 2, 0.01);
  EXPECT_LE(phase.max().item<double>(), 1.0001);
  EXPECT_NEAR(phase.mean().item<double>(), 0.5, 0.02);
  EXPECT_LE((exp("gamma_log").square() + size.square() - 1).abs().max().item<double>(), 1e-5);
}

TEST(Lru, StartsFiniteOnTheUnitCircle) {
  for (const auto& parameter : lru_of("r_min = 1.0\nr_max = 1.0")->parameters()) {
    EXPECT_TRUE(parameter.isfinite().all().item<bool>());
  }
  EXPECT_THROW(lru_of("r_min = 0.9\nr_max = 0.8"), Error);
}

TEST(Lru, PutsItsParametersIntoGroups) {
  const std::map<std::string, std::string> expected = {
      {"nu_log", "ssm"}, {"theta_log", "ssm"}, {"gamma_log", "ssm"}, {"b", "b"}};
  EXPECT_EQ(lru_of("")->groups(), expected);
}

}  // namespace
}  // namespace lra::mixers
