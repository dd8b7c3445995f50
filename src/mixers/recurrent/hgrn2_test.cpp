// The oracle of HGRN2: its definition, one position after another.
#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

Tensor hgrn2(const OracleInput& in) {
  const ConfigTable config = kHgrn2.resolve(in.config);
  const int64_t directions = std::get<bool>(config.find("bidirectional")->value) ? 2 : 1;
  const int64_t width = std::get<int64_t>(config.find("head_channels")->value);
  const auto parts = at::linear(in.x_BLD, in.parameters.at("in_weight")).chunk(3, 2);
  Tensor f = parts[1].sigmoid();
  if (const auto bound = in.parameters.find("bound"); bound != in.parameters.end()) {
    f = bound->second.sigmoid() + (1 - bound->second.sigmoid()) * f;
  }
  std::vector<Tensor> all;
  for (int64_t d = 0; d < directions; ++d) {
    const auto own = [&](const Tensor& t) {
      return turned(t.unflatten(2, {-1, width}).chunk(directions, 2)[static_cast<size_t>(d)], d);
    };
    const Tensor o = matrix_states_oracle(own(at::silu(parts[0])), own(1 - f), own(parts[2]),
                                          own(f), {}, turned(in.valid_BL, d));
    all.push_back(turned(o.flatten(2), d));
  }
  return at::linear(rms_norm_oracle(at::cat(all, 2), in.parameters.at("norm_weight")),
                    in.parameters.at("out_weight"));
}

const ConformanceRow kHgrn2Row{"hgrn2", hgrn2,
                               "head_channels = 2\nbidirectional = false\nlower_bound = 0.25", 0};

TEST(Hgrn2, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"head_channels = 3", "head_channels = 6\nlower_bound = 0.9\nbidirectional = false"}) {
    expect_variant_agrees(kHgrn2, hgrn2, settings, {.value = 0x1p-5, .gradient = 0x1p-2});
  }
}

std::shared_ptr<SequenceLayer> hgrn2_of(const std::string& settings, int64_t layer) {
  return kHgrn2.make(layers::Initializer(1), parse_toml(settings, "model.toml"),
                     {.model_dim = 128,
                      .attention = {.heads = 1, .head_dim = 4},
                      .max_length = 8,
                      .layer = layer});
}

// 4 D^2 + D, and D for the bound in every layer but the first.
TEST(Hgrn2, KeepsMoreInLaterLayers) {
  for (const int64_t layer : {0, 1, 3}) {
    const auto made = hgrn2_of("", layer);
    int64_t numbers = 0;
    for (const Tensor& t : made->parameters()) numbers += t.numel();
    EXPECT_EQ(numbers, 65536 + 128 + (layer > 0 ? 128 : 0));
    if (layer == 0) continue;
    const Tensor bound = made->named_parameters()["bound"].sigmoid();
    EXPECT_LE((bound - double(layer) / double(layer + 1)).abs().max().item<double>(), 1e-6);
  }
  EXPECT_FALSE(hgrn2_of("lower_bound = 0.0", 3)->named_parameters().contains("bound"));
}

// Gates that let everything in: f underflows in 1 - (1 - f), its logarithm is exact.
TEST(Hgrn2, ForgetsByVerySmallFactors) {
  const auto layer = hgrn2_of("head_channels = 128\nbidirectional = false", 0);
  const at::NoGradGuard no_grad;
  const Tensor x = 40 * at::ones({1, 5, 128});
  layer->named_parameters()["in_weight"].narrow(0, 128, 128).fill_(-1);
  EXPECT_TRUE(layer->forward(x, {}).isfinite().all().item<bool>());
}

// The same above a bound of almost 0.
TEST(Hgrn2, HasFiniteGradientsWithAVerySmallBound) {
  const auto layer = hgrn2_of("head_channels = 128\nbidirectional = false\nlower_bound = 1e-9", 0);
  const Tensor x = 20 * ops::random_tensor({1, 64, 128}, 1, at::kFloat);
  layer->forward(x, {}).sum().backward();
  for (const auto& parameter : layer->named_parameters()) {
    EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << parameter.key();
  }
}

TEST(Hgrn2, RefusesHeadsThatDoNotDivideTheWidth) {
  EXPECT_THROW(hgrn2_of("head_channels = 100", 0), Error);
  EXPECT_THROW(hgrn2_of("head_channels = 128", 0), Error) << "one head has no half";
  EXPECT_NO_THROW(hgrn2_of("head_channels = 128\nbidirectional = false", 0));
}

}  // namespace
}  // namespace lra::mixers
