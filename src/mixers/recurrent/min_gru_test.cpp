// The oracle of minGRU and minLSTM: its definition, one position after another.
#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

Tensor min_gru(const OracleInput& in) {
  const ConfigTable config = kMinGru.resolve(in.config);
  const auto linear = [&](const Tensor& x, const std::string& name) {
    return at::linear(x, in.parameters.at(name + ".weight"), in.parameters.at(name + ".bias"));
  };
  const int64_t directions = std::get<bool>(config.find("bidirectional")->value) ? 2 : 1;
  Tensor z = linear(in.x_BLD, "gate").sigmoid();
  if (std::get<bool>(config.find("forget_gate")->value)) {
    z = z / (z + linear(in.x_BLD, "forget").sigmoid());
  }
  const Tensor x = linear(in.x_BLD, "candidate");
  const bool is_linear = std::get<std::string>(config.find("candidate")->value) == "linear";
  const Tensor c = is_linear ? x : at::where(x.ge(0), x + 0.5, x.sigmoid());
  std::vector<Tensor> all;
  for (int64_t d = 0; d < directions; ++d) {
    const auto own = [&](const Tensor& t) {
      return turned(t, d).chunk(directions, 2)[static_cast<size_t>(d)];
    };
    all.push_back(turned(gated_states_oracle(1 - own(z), own(z * c), turned(in.valid_BL, d)), d));
  }
  return linear(at::cat(all, 2), "output");
}

// Linear, because the other candidate has a slope of 1 above 0 and of 1/4 below: rounding to
// bfloat16 changes gradients there.
const ConformanceRow kMinGruRow{"min_gru", min_gru, "expand = 2\ncandidate = 'linear'", 0};

TEST(MinGru, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"bidirectional = false\ngate_bias = -3.0", "expand = 3", "gate_bias = 2.0",
        "forget_gate = true\ngate_bias = -4.0", "forget_gate = true\ncandidate = 'linear'"}) {
    expect_variant_agrees(kMinGru, min_gru, settings);
  }
}

// 2 (D E + E) + E D + D, minLSTM 3 (D E + E) + E D + D
TEST(MinGru, HasThePublishedNumberOfParameters) {
  const auto layer =
      kMinGru.make(layers::Initializer(1), parse_toml("gate_bias = -5.0", "model.toml"),
                   {.model_dim = 128, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
  int64_t numbers = 0;
  for (const Tensor& t : layer->parameters()) numbers += t.numel();
  EXPECT_EQ(numbers, 49536);
  const auto lstm =
      kMinGru.make(layers::Initializer(1), parse_toml("forget_gate = true", "model.toml"),
                   {.model_dim = 128, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
  EXPECT_EQ(lstm->named_parameters()["forget.weight"].numel(), 128 * 128);
  EXPECT_TRUE(layer->named_parameters()["gate.bias"].eq(-5).all().item<bool>());
}

TEST(MinGru, RefusesChannelsWithoutAHalf) {
  const LayerShape odd{.model_dim = 5, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8};
  const auto make = [&](const char* settings) {
    return kMinGru.make(layers::Initializer(1), parse_toml(settings, "model.toml"), odd);
  };
  EXPECT_THROW(make(""), Error);
  EXPECT_NO_THROW(make("bidirectional = false"));
}

}  // namespace
}  // namespace lra::mixers
