// The oracle of Gated DeltaNet: its definition, one position after another.
#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// The heads of direction `d` of `directions` before the gate, [B, L, H V].
Tensor memory_of_direction(const OracleInput& in, int64_t d, int64_t directions) {
  const auto of = [&](const char* name) { return in.parameters.at(name); };
  const int64_t heads = of("beta_weight").size(0) / directions, values = of("norm_weight").size(0);
  const int64_t keys = (of("qkv_weight").size(0) / (heads * directions) - values) / 2;
  const Tensor u = turned(in.x_BLD, d), valid = turned(in.valid_BL, d);
  const auto mixed = [&](int64_t from, int64_t width) {
    const auto rows = [&](const char* name) {
      return of(name).narrow(0, heads * (directions * from + d * width), heads * width);
    };
    return at::silu(convolution_oracle(at::linear(u, rows("qkv_weight")),
                                       valid.unsqueeze(2).to(at::kDouble), rows("conv_weight"),
                                       at::zeros({1}, at::kDouble)))
        .unflatten(2, {heads, width});
  };
  const auto unit = [](const Tensor& t) { return t / (t.square().sum(-1, true) + 1e-6).sqrt(); };
  const auto own = [&](const char* name) { return of(name).narrow(0, d * heads, heads); };
  Tensor beta = at::linear(u, own("beta_weight")).sigmoid(), decay = at::ones_like(beta);
  const auto twice = kGatedDeltaNet.resolve(in.config).find("negative_eigenvalues")->value;
  if (std::get<bool>(twice)) beta = 2 * beta;
  if (in.parameters.contains("a_log")) {
    const Tensor step = at::softplus(at::linear(u, own("decay_weight")) + own("dt_bias"));
    decay = (-own("a_log").exp() * step).exp();
  }
  const Tensor q = unit(mixed(0, keys)) / std::sqrt(static_cast<double>(keys));
  const Tensor o = matrix_states_oracle(q, unit(mixed(keys, keys)), mixed(2 * keys, values),
                                        decay.unsqueeze(3), beta, valid);
  return turned(rms_norm_oracle(o, of("norm_weight")).flatten(2), d);
}

Tensor gated_deltanet(const OracleInput& in) {
  const auto both = kGatedDeltaNet.resolve(in.config).find("bidirectional")->value;
  const int64_t directions = std::get<bool>(both) ? 2 : 1;
  std::vector<Tensor> all;
  for (int64_t d = 0; d < directions; ++d) all.push_back(memory_of_direction(in, d, directions));
  Tensor y = at::cat(all, 2);
  if (in.parameters.contains("gate_weight")) {
    y = y * at::silu(at::linear(in.x_BLD, in.parameters.at("gate_weight")));
  }
  return at::linear(y, in.parameters.at("out_weight"));
}

const ConformanceRow kGatedDeltaNetRow{"gated_deltanet", gated_deltanet,
                                       "num_heads = 2\nkey_dim = 4\nconv_width = 3", 0};

TEST(GatedDeltaNet, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"num_heads = 1\nkey_dim = 16\nbidirectional = false\nnegative_eigenvalues = true",
        "num_heads = 2\nkey_dim = 3\nvalue_dim = 3\ndecay = false\ngate = false\nconv_width = 5",
        "num_heads = 4\nkey_dim = 4\nvalue_dim = 5\nconv_width = 1\na_max = 0.1"}) {
    expect_variant_agrees(kGatedDeltaNet, gated_deltanet, settings,
                          {.value = 0x1p-4, .gradient = 0x1p-3});
  }
}

std::shared_ptr<SequenceLayer> deltanet_of(const std::string& settings) {
  return kGatedDeltaNet.make(
      layers::Initializer(1), parse_toml(settings, "model.toml"),
      {.model_dim = 128, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

// 6 D^2 + 2 D H + 4 (2 H K + H V) + 2 H + V at H K = 3/4 D and V = 2 K, and DeltaNet.
TEST(GatedDeltaNet, HasThePublishedNumberOfParameters) {
  const auto count = [](const std::string& settings) {
    int64_t numbers = 0;
    for (const Tensor& t : deltanet_of(settings)->parameters()) numbers += t.numel();
    return numbers;
  };
  EXPECT_EQ(count(""), 100920);
  EXPECT_EQ(count("key_dim = 32\nvalue_dim = 32\ndecay = false\ngate = false"), 67616);
}

TEST(GatedDeltaNet, RefusesAnOddNumberOfHeadsForTwoDirections) {
  EXPECT_THROW(deltanet_of("num_heads = 3"), Error);
  EXPECT_NO_THROW(deltanet_of("num_heads = 3\nbidirectional = false"));
  EXPECT_THROW(deltanet_of("dt_min = 0.2\ndt_max = 0.1"), Error);
}

}  // namespace
}  // namespace lra::mixers
