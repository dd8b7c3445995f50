// The oracle of Mamba-2: its definition, one position after another.
#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// The heads of direction `d` of `directions`: x SiLU(z), before the norm.
Tensor heads_of_direction(const OracleInput& in, int64_t d, int64_t directions, int64_t states) {
  const auto of = [&](const char* name) { return in.parameters.at(name); };
  const int64_t inner = of("norm_weight").size(0), heads = of("a_log").size(0) / directions;
  const int64_t width = inner / directions, shared = directions * states;
  const Tensor u = turned(in.x_BLD, d), valid = turned(in.valid_BL, d);
  const auto rows = [&](const char* name, int64_t from) {  // of x, b and c
    const Tensor all = of(name);
    return at::cat({all.narrow(0, from + d * width, width),
                    all.narrow(0, from + inner + d * states, states),
                    all.narrow(0, from + inner + shared + d * states, states)});
  };
  const Tensor mixed = at::silu(convolution_oracle(at::linear(u, rows("in_weight", inner)),
                                                   valid.unsqueeze(2).to(at::kDouble),
                                                   rows("conv_weight", 0), rows("conv_bias", 0)));
  const Tensor x = mixed.narrow(2, 0, width).unflatten(2, {heads, -1});
  const auto of_heads = [&](int64_t from) {
    return mixed.narrow(2, from, states).unsqueeze(2).expand({-1, -1, heads, -1});
  };
  const auto own = [&](const char* name) { return of(name).narrow(0, d * heads, heads); };
  const int64_t steps_from = 2 * inner + 2 * shared + d * heads;
  const Tensor dt =
      at::softplus(at::linear(u, of("in_weight").narrow(0, steps_from, heads)) + own("dt_bias"))
          .unsqueeze(3);
  const Tensor decay = (-own("a_log").exp().unsqueeze(1) * dt).exp();
  const Tensor y =
      matrix_states_oracle(of_heads(width + states), of_heads(width), dt * x, decay, {}, valid) +
      own("skip").unsqueeze(1) * x;
  const Tensor z = at::linear(u, of("in_weight").narrow(0, d * width, width));
  return turned(y.flatten(2) * at::silu(z), d);
}

Tensor mamba2(const OracleInput& in) {
  const ConfigTable config = kMamba2.resolve(in.config);
  const int64_t directions = std::get<bool>(config.find("bidirectional")->value) ? 2 : 1;
  const int64_t states = std::get<int64_t>(config.find("states")->value);
  std::vector<Tensor> all;
  for (int64_t d = 0; d < directions; ++d) {
    const Tensor y = heads_of_direction(in, d, directions, states);
    all.push_back(rms_norm_oracle(y, in.parameters.at("norm_weight").chunk(directions)[d]));
  }
  return at::linear(at::cat(all, 2), in.parameters.at("out_weight"));
}

const ConformanceRow kMamba2Row{"mamba2", mamba2, "states = 3\nhead_channels = 2\nconv_width = 3",
                                0};

TEST(Mamba2, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"states = 5\nhead_channels = 4\nbidirectional = false",
        "states = 1\nhead_channels = 3\nexpand = 1\nconv_width = 1",
        "states = 2\nhead_channels = 6\na_min = 0.0\na_max = 0.1\nconv_width = 6"}) {
    expect_variant_agrees(kMamba2, mamba2, settings, {.value = 0x1p-5, .gradient = 0x1p-3});
  }
}

std::shared_ptr<SequenceLayer> mamba2_of(const std::string& settings) {
  return kMamba2.make(layers::Initializer(1), parse_toml(settings, "model.toml"),
                      {.model_dim = 40, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

TEST(Mamba2, StartsWithItsStepsAndRates) {
  const auto parameters =
      mamba2_of("head_channels = 1\na_min = 2.0\na_max = 3.0\ndt_min = 0.01\ndt_max = 0.2")
          ->named_parameters();
  const Tensor dt = at::softplus(parameters["dt_bias"].detach().to(at::kDouble));
  EXPECT_GE(dt.min().item<double>(), 0.01 * (1 - 1e-4));
  EXPECT_LE(dt.max().item<double>(), 0.2 * (1 + 1e-4));
  EXPECT_LT(dt.min().item<double>(), 0.03);
  EXPECT_GT(dt.max().item<double>(), 0.1);
  const Tensor rates = parameters["a_log"].detach().exp();
  EXPECT_GE(rates.min().item<float>(), 2);
  EXPECT_LE(rates.max().item<float>(), 3.0001f);
  EXPECT_NEAR(rates.mean().item<float>(), 2.5f, 0.1f);
}

TEST(Mamba2, RefusesHeadsThatDoNotFit) {
  EXPECT_THROW(mamba2_of("head_channels = 3"), Error);
  EXPECT_THROW(mamba2_of("head_channels = 80"), Error);
  EXPECT_NO_THROW(mamba2_of("head_channels = 80\nbidirectional = false"));
  EXPECT_THROW(mamba2_of("head_channels = 4\na_min = 5.0\na_max = 1.0"), Error);
}

}  // namespace
}  // namespace lra::mixers
