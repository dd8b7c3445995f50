// The dense oracle of S4D: an L x L convolution matrix for each channel, from the definition in
// complex numbers.
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

std::string text_setting(const OracleInput& in, const char* name) {
  return std::get<std::string>(kS4d.resolve(in.config).find(name)->value);
}

// lambda [D, n].
Tensor poles(const OracleInput& in) {
  const Tensor rate = in.parameters.at("log_rate").exp();
  const auto frequency = in.parameters.find("frequency");
  return at::complex(-rate,
                     frequency == in.parameters.end() ? at::zeros_like(rate) : frequency->second)
      .expand({in.shape.model_dim, rate.size(1)});
}

// K[d, i, j]: how x[j] enters y[i]. Zero-order hold of lambda with B = 1.
Tensor convolution_matrix(const OracleInput& in) {
  const bool is_real = text_setting(in, "init") == "real";
  const Tensor learned = in.parameters.at("dt"), lambda = poles(in);
  const Tensor dt =
      text_setting(in, "dt_transform") == "exp" ? learned.exp() : at::softplus(learned);
  const Tensor z = lambda * dt.unsqueeze(1), b = (z.exp() - 1) / lambda;
  const int64_t length = in.x_BLD.size(1);
  const Tensor lag = at::arange(length).unsqueeze(1) - at::arange(length);
  const Tensor& c_parts = in.parameters.at("c");
  const Tensor c = is_real ? at::complex(c_parts.squeeze(-1), at::zeros_like(c_parts.squeeze(-1)))
                           : at::view_as_complex(c_parts.contiguous());
  Tensor matrix = at::zeros({in.shape.model_dim, length, length}, at::kDouble);
  for (int64_t direction = 0; direction < c.size(0); ++direction) {
    const Tensor steps = (direction == 0 ? lag : -lag - 1).clamp_min(0).to(at::kDouble);
    const Tensor powers = (z.unsqueeze(-1).unsqueeze(-1) * steps).exp();  // [D, n, L, L]
    const Tensor kernel = at::real(
        (((is_real ? 1 : 2) * c[direction] * b).unsqueeze(-1).unsqueeze(-1) * powers).sum(1));
    matrix = matrix + kernel * (direction == 0 ? lag.ge(0) : lag.lt(0)).to(at::kDouble);
  }
  return matrix;
}

Tensor s4d(const OracleInput& in) {
  const Tensor u = in.x_BLD * in.valid_BL.unsqueeze(-1).to(at::kDouble);
  const Tensor y =
      at::einsum("dij,bjd->bid", {convolution_matrix(in), u}) + in.parameters.at("skip") * u;
  return gated_output(in, y, text_setting(in, "output"));
}

const ConformanceRow kS4dRow{"s4d", s4d, "states = 6\ninit = 'lin'", 0};

TEST(S4d, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"states = 6", "states = 8\ninit = 'inv'\nshared_poles = false", "states = 3\ninit = 'real'",
        "states = 4\nbidirectional = false\noutput = 'none'",
        "states = 4\ninit = 'lin'\nalpha = 3.0\ndt_transform = 'softplus'"}) {
    expect_variant_agrees(kS4d, s4d, settings);
  }
}

std::shared_ptr<SequenceLayer> layer_of(const char* settings, int64_t dim = 4) {
  return kS4d.make(layers::Initializer(1), parse_toml(settings, "model.toml"),
                   {.model_dim = dim, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

// The published eigenvalues: HiPPO-LegS' are about those of S4D-Inv, far from equally spaced.
TEST(S4d, StartsWithThePolesOfThePaper) {
  const auto frequency = [](const char* settings) {
    return layer_of(settings)->named_parameters()["frequency"][0].to(at::kDouble);
  };
  const Tensor lin = frequency("init = 'lin'\nstates = 8\nalpha = 2.0");
  EXPECT_LE((lin - 2 * std::numbers::pi * at::arange(4)).abs().max().item<double>(), 1e-5);
  const Tensor inv = frequency("init = 'inv'\nstates = 8");
  EXPECT_NEAR(inv[0].item<double>(), 8 / std::numbers::pi * 7, 1e-5);
  // For two states the antisymmetric matrix is [[0, r], [-r, 0]] with r = sqrt(3) / 2.
  EXPECT_NEAR(frequency("states = 2")[0].item<double>(), std::sqrt(3.0) / 2, 1e-7);
  const Tensor legs = frequency("states = 64");
  EXPECT_TRUE(legs.gt(0).all().item<bool>());
  // The sum of squares of the frequencies is half the squared norm of the matrix.
  const Tensor root = (2 * at::arange(64, at::kDouble) + 1).sqrt();
  const Tensor below = (root.unsqueeze(1) * root).tril(-1) / 2;
  EXPECT_NEAR(legs.square().sum().item<double>() / below.square().sum().item<double>(), 1, 1e-6);
  const Tensor real = layer_of("init = 'real'\nstates = 3")->named_parameters()["log_rate"].exp();
  EXPECT_LE((real[0] - at::arange(1, 4)).abs().max().item<double>(), 1e-6);
}

TEST(S4d, DrawsStepsBetweenItsLimits) {
  for (const char* transform : {"exp", "softplus"}) {
    const std::string settings = std::string("dt_transform = '") + transform + "'";
    const auto layer = layer_of(settings.c_str(), 500);
    const Tensor learned = layer->named_parameters()["dt"];
    const Tensor dt = std::string(transform) == "exp" ? learned.exp() : at::softplus(learned);
    EXPECT_GE(dt.min().item<double>(), 0.999e-3);
    EXPECT_LE(dt.max().item<double>(), 0.1001);
    EXPECT_NEAR(dt.log().mean().item<double>(), (std::log(1e-3) + std::log(0.1)) / 2, 0.3);
  }
}

TEST(S4d, PutsItsParametersIntoGroups) {
  const std::map<std::string, std::string> expected = {
      {"dt", "dt"}, {"log_rate", "ssm"}, {"frequency", "ssm"}, {"c", "c"}};
  EXPECT_EQ(layer_of("")->groups(), expected);
}

TEST(S4d, RefusesStatesThatAreNoPairsAndStepsThatAreNone) {
  EXPECT_THROW(layer_of("states = 5"), Error);
  EXPECT_NO_THROW(layer_of("states = 5\ninit = 'real'"));
  EXPECT_THROW(layer_of("dt_min = 0.2"), Error);
}

// The blocks' dropout reaches the layer: another key, other numbers.
TEST(S4d, DropsAtTheRateOfTheBlock) {
  const auto layer = layer_of("output = 'none'", 64);
  const Tensor x = ops::random_tensor({2, 9, 64}, 1, at::kFloat);
  const auto run = [&](uint64_t key) { return layer->forward(x, {.key = key, .dropout = 0.5}); };
  EXPECT_FALSE(at::equal(run(1), run(2)));
  EXPECT_NEAR(run(1).eq(0).to(at::kDouble).mean().item<double>(), 0.5, 0.1);
}

}  // namespace
}  // namespace lra::mixers
