// The oracle of RG-LRU: its definition, one position after another.
#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// 1 at the first valid position of a direction, whose time is that of `valid`.
Tensor first_positions(const Tensor& valid_BL) {
  const Tensor seen = valid_BL.to(at::kLong).cumsum(1);
  return (seen.eq(1) & valid_BL.to(at::kBool)).to(at::kDouble).unsqueeze(2);
}

Tensor rg_lru(const OracleInput& in) {
  const auto of = [&](const std::string& name) { return in.parameters.at(name); };
  const auto linear = [&](const Tensor& x, const std::string& name) {
    return at::linear(x, of(name + ".weight"), of(name + ".bias"));
  };
  const bool both = std::get<bool>(kRgLru.resolve(in.config).find("bidirectional")->value);
  const int64_t directions = both ? 2 : 1;
  const Tensor rows = linear(in.x_BLD, "input");
  std::vector<Tensor> mixed, states;
  for (int64_t d = 0; d < directions; ++d) {
    const auto half = [&](const Tensor& t, int64_t axis) {
      return t.chunk(directions, axis)[static_cast<size_t>(d)];
    };
    const Tensor valid = turned(in.valid_BL, d).unsqueeze(2).to(at::kDouble);
    mixed.push_back(turned(convolution_oracle(half(turned(rows, d), 2), valid,
                                              half(of("conv_weight"), 0), half(of("conv_bias"), 0)),
                           d));
  }
  const Tensor x = at::cat(mixed, 2);
  const auto gate = [&](const char* weight, const char* bias) {
    const Tensor blocks = x.unflatten(2, {of(weight).size(0), -1});
    return (at::einsum("blhp,hqp->blhq", {blocks, of(weight)}).flatten(2) + of(bias)).sigmoid();
  };
  const Tensor a = (-8 * gate("a_weight", "a_bias") * at::softplus(of("lambda"))).exp();
  const Tensor input = gate("i_weight", "i_bias") * x;
  for (int64_t d = 0; d < directions; ++d) {
    const auto own = [&](const Tensor& t) {
      return turned(t, d).chunk(directions, 2)[static_cast<size_t>(d)];
    };
    const Tensor first = first_positions(turned(in.valid_BL, d));
    const Tensor scale = first + (1 - first) * (1 - own(a).square()).clamp_min(2.5e-7).sqrt();
    states.push_back(
        turned(gated_states_oracle(own(a), scale * own(input), turned(in.valid_BL, d)), d));
  }
  const Tensor y = at::gelu(linear(in.x_BLD, "gate"), "tanh");
  return linear(at::cat(states, 2) * y, "output");
}

const ConformanceRow kRgLruRow{"rg_lru", rg_lru, "blocks = 2\nconv_width = 3", 0};

TEST(RgLru, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"blocks = 3\nbidirectional = false\nconv_width = 1", "blocks = 1\ninner_dim = 8",
        "inner_dim = 4\nblocks = 4\nr_min = 0.4\nr_max = 0.5"}) {
    expect_variant_agrees(kRgLru, rg_lru, settings);
  }
}

std::shared_ptr<SequenceLayer> rg_lru_of(const std::string& settings, int64_t dim = 128) {
  return kRgLru.make(layers::Initializer(1), parse_toml(settings, "model.toml"),
                     {.model_dim = dim, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

// 2 (D E + E) + 5 E + 2 (E^2 / H + E) + E + E D + D
TEST(RgLru, HasThePublishedNumberOfParameters) {
  int64_t numbers = 0;
  for (const Tensor& t : rg_lru_of("")->parameters()) numbers += t.numel();
  EXPECT_EQ(numbers, 58752);
}

TEST(RgLru, StartsOnItsRing) {
  const auto layer = rg_lru_of("r_min = 0.5\nr_max = 0.9\ninner_dim = 4000");
  const Tensor lambda = layer->named_parameters()["lambda"].detach().to(at::kDouble);
  const Tensor a = (-8 * at::softplus(lambda)).exp();
  EXPECT_GE(a.min().item<double>(), 0.4999);
  EXPECT_LE(a.max().item<double>(), 0.9001);
  EXPECT_NEAR(a.square().mean().item<double>(), (0.25 + 0.81) / 2, 0.01);
}

TEST(RgLru, RefusesBlocksThatDoNotFit) {
  EXPECT_THROW(rg_lru_of("blocks = 3"), Error);
  EXPECT_THROW(rg_lru_of("blocks = 1", 5), Error);
  EXPECT_THROW(rg_lru_of("r_min = 0.9\nr_max = 0.8"), Error);
}

}  // namespace
}  // namespace lra::mixers
