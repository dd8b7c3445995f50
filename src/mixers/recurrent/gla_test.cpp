// The oracle of gated linear attention: its definition, one position after another.
#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

Tensor gla(const OracleInput& in) {
  const ConfigTable config = kGla.resolve(in.config);
  const int64_t heads = std::get<int64_t>(config.find("num_heads")->value);
  const int64_t directions = std::get<bool>(config.find("bidirectional")->value) ? 2 : 1;
  const auto linear = [&](const Tensor& x, const char* name) {
    return at::linear(x, in.parameters.at(name));
  };
  const Tensor logits = linear(linear(in.x_BLD, "decay_in_weight"), "decay_out_weight") +
                        in.parameters.at("decay_bias");
  const Tensor a = logits.sigmoid().pow(1 / std::get<double>(config.find("temperature")->value));
  const int64_t keys = a.size(2), values = in.parameters.at("norm_weight").size(0) * heads;
  const Tensor qkv = linear(in.x_BLD, "qkv_weight");
  std::vector<Tensor> all;
  for (int64_t d = 0; d < directions; ++d) {
    const auto own = [&](const Tensor& t) {
      return turned(t.unflatten(2, {heads, -1}).chunk(directions, 2)[static_cast<size_t>(d)], d);
    };
    const Tensor q = own(qkv.narrow(2, 0, keys)), k = own(qkv.narrow(2, keys, keys));
    const Tensor o = matrix_states_oracle(q / std::sqrt(static_cast<double>(q.size(3))), k,
                                          own(qkv.narrow(2, 2 * keys, values)), own(a), {},
                                          turned(in.valid_BL, d));
    all.push_back(turned(rms_norm_oracle(o, in.parameters.at("norm_weight")).flatten(2), d));
  }
  return linear(at::cat(all, 2) * at::silu(linear(in.x_BLD, "gate_weight")), "out_weight");
}

const ConformanceRow kGlaRow{"gla", gla, "num_heads = 2\nkey_dim = 8\nvalue_dim = 8\nrank = 2", 0};

TEST(Gla, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"num_heads = 3\nbidirectional = false\ntemperature = 1.0",
        "num_heads = 2\nrank = 5\ndecay_bias = 3.0", "num_heads = 4\nkey_dim = 3\nvalue_dim = 2"}) {
    expect_variant_agrees(kGla, gla, settings, {.value = 0x1p-5, .gradient = 0x1p-2});
  }
}

std::shared_ptr<SequenceLayer> gla_of(const std::string& settings) {
  return kGla.make(layers::Initializer(1), parse_toml(settings, "model.toml"),
                   {.model_dim = 128, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

// 4 D^2 + 16 (D + D / 2) + D / 2 + V
TEST(Gla, HasThePublishedNumberOfParameters) {
  int64_t numbers = 0;
  for (const Tensor& t : gla_of("")->parameters()) numbers += t.numel();
  EXPECT_EQ(numbers, 68704);
  EXPECT_TRUE(
      gla_of("decay_bias = 2.0")->named_parameters()["decay_bias"].eq(2).all().item<bool>());
}

TEST(Gla, RefusesAnOddNumberOfHeadsForTwoDirections) {
  EXPECT_THROW(gla_of("num_heads = 3"), Error);
  EXPECT_NO_THROW(gla_of("num_heads = 3\nbidirectional = false"));
}

}  // namespace
}  // namespace lra::mixers
