// The support of the conformance tests, and the dense oracles of the mixers without a test file of
// their own. Oracles follow the published definitions and the rulings in the head of each mixer's
// source.
#include "io/toml.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"
#include "ops/precision.h"

namespace lra::mixers {
namespace {

using at::Tensor;

Tensor transformer(const OracleInput& in) { return self_attention(in, pairs_in_order(in)); }

Tensor linformer(const OracleInput& in) {
  const Tensor valid = in.valid_BL.to(at::kDouble);
  const Tensor p_LR = in.parameters.at("projection").narrow(0, 0, in.x_BLD.size(1));
  const auto shorten = [&](const Tensor& t) {
    return at::einsum("bl,lr,blhe->brhe", {valid, p_LR, t});
  };
  const Tensor queries_BHLR = in.valid_BL.unsqueeze(1).unsqueeze(-1);
  return merge_heads(
      in, ops::dense_attention(heads_of(in, "query.weight", 0),
                               shorten(heads_of(in, "key_value.weight", 0)),
                               shorten(heads_of(in, "key_value.weight", 1)),
                               queries_BHLR.expand({-1, 1, -1, p_LR.size(1)}), in.dropout));
}

Tensor linear_transformer(const OracleInput& in) {
  const auto phi = [](const Tensor& x) { return at::where(x > 0, x + 1, x.clamp_max(0).exp()); };
  const double eps = std::get<double>(in.config.find("eps")->value);
  Tensor weights_BHLS = at::einsum(
      "blhe,bshe->bhls", {phi(heads_of(in, "qkv.weight", 0)), phi(heads_of(in, "qkv.weight", 1))});
  weights_BHLS = weights_BHLS * in.valid_BL.to(at::kDouble).unsqueeze(1).unsqueeze(1) *
                 pairs_in_order(in).to(at::kDouble);
  weights_BHLS = weights_BHLS / (weights_BHLS.sum(-1, true) + eps);
  return merge_heads(in,
                     at::einsum("bhls,bshe->blhe", {weights_BHLS, heads_of(in, "qkv.weight", 2)}));
}

const ConformanceRow kRows[] = {
    {"transformer", transformer, "", 1},
    {"linformer", linformer, "rank = 5", 0},
    {"linear_transformer", linear_transformer, "eps = 1e-6", 1},
};

TEST(CausalAttention, OfTheTransformersAgreesWithItsOracle) {
  expect_variant_agrees(kTransformer, transformer, "causal = true");
  expect_variant_agrees(kLinearTransformer, linear_transformer, "eps = 1e-6\ncausal = true");
}

// The gradient of a token's output with respect to later tokens is 0, and not to the token itself.
TEST(CausalAttention, SeesNoLaterToken) {
  constexpr int64_t kLength = 40, kQuery = 17;
  const Tensor x = ops::random_tensor({1, kLength, 6}, 5, at::kFloat);
  for (const LayerSpec* spec : kAllMixers) {
    const auto settings = spec->describe();
    if (std::ranges::none_of(settings, [](const auto& s) { return s.name == "causal"; })) continue;
    if (spec->name == "longformer") continue;  // its first token sees all
    const auto layer = spec->make(
        layers::Initializer(1), parse_toml("causal = true", "test settings"),
        {.model_dim = 6, .attention = {.heads = 2, .head_dim = 4}, .max_length = kLength});
    const Tensor in = x.clone().set_requires_grad(true);
    layer->forward(in, {})[0][kQuery].square().sum().backward();
    const Tensor seen = in.grad()[0].ne(0).any(-1);
    EXPECT_FALSE(seen.narrow(0, kQuery + 1, kLength - kQuery - 1).any().item<bool>()) << spec->name;
    EXPECT_TRUE(seen.narrow(0, 0, kQuery + 1).any().item<bool>()) << spec->name;
  }
}

// Filled before main() by the objects of all test files.
std::vector<Conformance>& table() {
  static std::vector<Conformance> rows;
  return rows;
}

}  // namespace

ConformanceRow::ConformanceRow(std::string_view name, Oracle oracle, const char* config,
                               int64_t interchangeable) {
  table().push_back({name, oracle, config, interchangeable});
}

Conformance conformance_of(const LayerSpec& spec) {
  for (const Conformance& row : table()) {
    if (row.name == spec.name) return row;
  }
  return {spec.name, nullptr, "", 0};
}

at::Tensor ragged_mask(int64_t length) {
  Tensor mask = at::zeros({3, length}, at::kByte);
  mask[0].fill_(1);
  mask[1].narrow(0, 0, (length + 1) / 2).fill_(1);
  return mask;
}

at::Tensor zero_padding(const Tensor& x_BLD, const Tensor& mask_BL) {
  return mask_BL.defined() ? at::where(mask_BL.to(at::kBool).unsqueeze(-1), x_BLD, 0) : x_BLD;
}

std::shared_ptr<SequenceLayer> TestedMixer::make(at::ScalarType type, uint64_t seed) const {
  auto mixer =
      spec.make(layers::Initializer(seed), parse_toml(conformance.config, "test settings"), shape);
  mixer->to(type);
  return mixer;
}

std::vector<Tensor> TestedMixer::inputs(const Tensor& x_BLD) const {
  std::vector<Tensor> list = {x_BLD};
  for (const Tensor& p : make(at::kDouble)->parameters()) list.push_back(p.detach());
  return list;
}

ops::TensorFunction TestedMixer::function(const layers::Context& context,
                                          at::ScalarType type) const {
  return [self = *this, context, type](const std::vector<Tensor>& in) {
    const auto mixer = self.make(ops::wide_type(type));
    std::vector<Tensor> parameters = mixer->parameters();
    LRA_CHECK_EQ(parameters.size() + 1, in.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      // Copied under autograd, a parameter passes its gradient on to the input it came from.
      parameters[i].set_requires_grad(false).copy_(in[i + 1]);
    }
    return zero_padding(mixer->forward(in[0], context), context.mask_BL);
  };
}

ops::TensorFunction TestedMixer::oracle(const layers::Context& context) const {
  if (conformance.oracle == nullptr) return function(context, at::kDouble);
  return [self = *this, context](const std::vector<Tensor>& in) {
    OracleInput input{.parameters = {},
                      .shape = self.shape,
                      .config = parse_toml(self.conformance.config, "test settings"),
                      .x_BLD = in[0],
                      .valid_BL = at::ones({in[0].size(0), in[0].size(1)}, at::kBool),
                      .dropout = {context.attention_dropout, context.key}};
    if (context.mask_BL.defined()) input.valid_BL = context.mask_BL.to(at::kBool);
    const auto mixer = self.make(at::kDouble);
    size_t i = 1;
    for (const auto& item : mixer->named_parameters()) {
      input.parameters[item.key()] = in[i++];
    }
    for (const auto& item : mixer->named_buffers()) input.parameters[item.key()] = item.value();
    return zero_padding(self.conformance.oracle(input), context.mask_BL);
  };
}

}  // namespace lra::mixers
