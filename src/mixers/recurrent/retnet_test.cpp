// The oracle of RetNet: its definition, one position after another.
#include <numbers>

#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// Pairs of channels turned by angles that grow with the position.
Tensor turned_pairs(const Tensor& x_BLHK) {
  const int64_t pairs = x_BLHK.size(3) / 2;
  const Tensor speed = at::pow(10000.0, -at::arange(pairs, at::kDouble) / pairs);
  const Tensor angle = at::arange(x_BLHK.size(1), at::kDouble).view({-1, 1, 1}) * speed;
  const Tensor z = at::view_as_complex(x_BLHK.unflatten(3, {pairs, 2}).contiguous()) *
                   at::polar(at::ones_like(angle), angle);
  return at::view_as_real(z).flatten(3);
}

Tensor retnet(const OracleInput& in) {
  const ConfigTable config = kRetNet.resolve(in.config);
  const int64_t heads = std::get<int64_t>(config.find("num_heads")->value);
  const int64_t directions = std::get<bool>(config.find("bidirectional")->value) ? 2 : 1;
  const int64_t values = in.parameters.at("norm_weight").size(0), half = heads / directions;
  const Tensor qkv = at::linear(in.x_BLD, in.parameters.at("qkv_weight"));
  const int64_t keys = (qkv.size(2) / heads - values) / 2;
  const Tensor q = turned_pairs(qkv.narrow(2, 0, heads * keys).unflatten(2, {heads, keys})),
               k = turned_pairs(
                   qkv.narrow(2, heads * keys, heads * keys).unflatten(2, {heads, keys})),
               v = qkv.narrow(2, 2 * heads * keys, heads * values).unflatten(2, {heads, values});
  const Tensor gamma = 1 - at::pow(2.0, -5 - at::arange(half, at::kDouble));
  std::vector<Tensor> all;
  for (int64_t d = 0; d < directions; ++d) {
    const auto own = [&](const Tensor& t) { return turned(t.narrow(2, d * half, half), d); };
    const Tensor a = gamma.view({1, 1, half, 1}).expand({q.size(0), q.size(1), half, 1});
    const Tensor o = matrix_states_oracle(own(q) / std::sqrt(static_cast<double>(keys)), own(k),
                                          own(v), a, {}, turned(in.valid_BL, d));
    all.push_back(turned(rms_norm_oracle(o, in.parameters.at("norm_weight")).flatten(2), d));
  }
  const Tensor gate = at::silu(at::linear(in.x_BLD, in.parameters.at("gate_weight")));
  return at::linear(at::cat(all, 2) * gate, in.parameters.at("out_weight"));
}

const ConformanceRow kRetNetRow{"retnet", retnet, "num_heads = 2\nkey_dim = 4", 0};

// The norm of what one token reads of itself, (q . k) v, has the sign of q . k, where rounding
// counts.
TEST(RetNet, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"num_heads = 3\nbidirectional = false", "num_heads = 4\nkey_dim = 2\nvalue_dim = 5"}) {
    expect_variant_agrees(kRetNet, retnet, settings, {.value = 0x1p-3, .gradient = 0x1p-2});
  }
}

std::shared_ptr<SequenceLayer> retnet_of(const std::string& settings) {
  return kRetNet.make(
      layers::Initializer(1), parse_toml(settings, "model.toml"),
      {.model_dim = 128, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

// 8 D^2 + V
TEST(RetNet, HasThePublishedNumberOfParameters) {
  int64_t numbers = 0;
  for (const Tensor& t : retnet_of("")->parameters()) numbers += t.numel();
  EXPECT_EQ(numbers, 131136);
}

TEST(RetNet, RefusesHeadsThatDoNotFit) {
  EXPECT_THROW(retnet_of("num_heads = 3"), Error);
  EXPECT_THROW(retnet_of("key_dim = 5"), Error);
}

}  // namespace
}  // namespace lra::mixers
