// The oracle of Synthesizer with explicit L x L scores, its variants, and the chunks of rows.
#include <cmath>

#include "io/toml.h"
#include "mixers/row_chunks.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {

using at::Tensor;

namespace {

at::Tensor synthesizer(const OracleInput& in);

const ConformanceRow kSynthesizerRow{"synthesizer", synthesizer, "rank = 3", 0};

std::string variant_of(const OracleInput& in) {
  const ConfigValue* found = in.config.find("variant");
  return found ? std::get<std::string>(found->value) : "factorized_random";
}

// relu(W1 x + b1), then the affine map `name` of each head: [B, H, L, rows].
Tensor from_tokens(const OracleInput& in, const std::string& name) {
  const Tensor hidden_BLN =
      at::einsum("bld,nd->bln", {in.x_BLD, in.parameters.at("hidden.weight")}) +
      in.parameters.at("hidden.bias");
  const Tensor hidden =
      at::relu(hidden_BLN).unflatten(2, {in.shape.attention.heads, in.shape.attention.head_dim});
  return at::einsum("blhe,hre->bhlr", {hidden, in.parameters.at(name + ".weight")}) +
         in.parameters.at(name + ".bias").unsqueeze(1);
}

// [B or 1, H, L, max_length]
Tensor synthetic_scores(const OracleInput& in) {
  const std::string variant = variant_of(in);
  const int64_t length = in.x_BLD.size(1);
  if (variant == "dense") return from_tokens(in, "scores");
  if (variant == "factorized_dense") {
    const Tensor a = from_tokens(in, "scores_a"), b = from_tokens(in, "scores_b");
    std::vector<Tensor> columns;
    for (int64_t j = 0; j < length; ++j) {
      columns.push_back(a.select(3, j % a.size(3)) * b.select(3, j / a.size(3)));
    }
    return at::stack(columns, 3);
  }
  const Tensor all =
      variant == "random"
          ? in.parameters.at("random")
          : at::einsum("hlr,hsr->hls", {in.parameters.at("factor1"), in.parameters.at("factor2")});
  return all.narrow(1, 0, length).unsqueeze(0);
}

Tensor synthesizer(const OracleInput& in) {
  const int64_t length = in.x_BLD.size(1);
  const bool dot_product = is_on(in, "dot_product");
  Tensor scores = synthetic_scores(in).narrow(3, 0, length);
  if (dot_product) {
    scores = scores + at::einsum("blhe,bshe->bhls",
                                 {heads_of(in, "qkv.weight", 0), heads_of(in, "qkv.weight", 1)}) /
                          std::sqrt(static_cast<double>(in.shape.attention.head_dim));
  }
  const Tensor v = heads_of(in, dot_product ? "qkv.weight" : "value.weight", dot_product ? 2 : 0);
  const Tensor allowed = ops::masks_allow(pairs_in_order(in).unsqueeze(0).unsqueeze(0),
                                          {.keys = in.valid_BL, .queries = in.valid_BL});
  Tensor weights = scores.masked_fill(~allowed, -1e30).softmax(-1) * allowed;
  if (in.dropout.rate > 0) {
    weights = weights *
              ops::attention_dropout_factors({v.size(0), v.size(2), length, length}, in.dropout);
  }
  return merge_heads(in, at::einsum("bhls,bshe->blhe", {weights, v}));
}

class SynthesizerVariant : public testing::TestWithParam<const char*> {};

TEST_P(SynthesizerVariant, AgreesWithItsOracle) {
  const std::string variant = std::string("variant = '") + GetParam() + "'\nrank = 4\n";
  for (const char* mixture :
       {"", "dot_product = true", "causal = true", "dot_product = true\ncausal = true"}) {
    // Rounding switches some ReLUs of the dense variants on or off, and their gradients with them.
    const bool is_dense = std::string_view(GetParam()).ends_with("dense");
    expect_variant_agrees(kSynthesizer, synthesizer, (variant + mixture).c_str(),
                          {.value = 0x1p-6, .gradient = is_dense ? 0x1p-3 : 0x1p-5});
  }
}

TEST_P(SynthesizerVariant, TrainsEveryParameter) {
  const std::string settings = std::string("dot_product = true\nvariant = '") + GetParam() + "'";
  const auto mixer = kSynthesizer.make(
      layers::Initializer(1), parse_toml(settings, "test settings"),
      {.model_dim = 6, .attention = {.heads = 2, .head_dim = 5}, .max_length = 33});
  const Tensor y = mixer->forward(ops::random_tensor({3, 33, 6}, 2, at::kFloat), {});
  (y * ops::loss_weights(y)).sum().backward();
  for (const auto& item : mixer->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_TRUE(item.value().grad().ne(0).any(-1).all().item<bool>()) << item.key();
  }
}

// The chunks of weights are 16 MiB, so that several are needed here.
TEST_P(SynthesizerVariant, GivesTheSameAtAnyNumberOfThreads) {
  const std::string settings = std::string("variant = '") + GetParam() + "'";
  const Conformance conformance{"synthesizer", synthesizer, settings.c_str(), 0};
  const TestedMixer mixer{
      kSynthesizer,
      conformance,
      {.model_dim = 6, .attention = {.heads = 4, .head_dim = 8}, .max_length = 700}};
  const auto f = mixer.function({ragged_mask(700), 0.1, 5}, at::kFloat);
  const auto inputs = mixer.inputs(ops::random_tensor({3, 700, 6}, 9));
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  const auto expected = ops::differentiate(f, inputs, at::kFloat);
  at::set_num_threads(1);
  const auto actual = ops::differentiate(f, inputs, at::kFloat);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(actual.value, expected.value));
  for (size_t i = 0; i < actual.gradients.size(); ++i) {
    EXPECT_TRUE(at::equal(actual.gradients[i], expected.gradients[i])) << "input " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, SynthesizerVariant,
                         testing::Values("random", "factorized_random", "dense",
                                         "factorized_dense"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Synthesizer, RefusesSettingsOutOfRange) {
  for (const char* settings : {"rank = 0", "variant = 'vanilla'"}) {
    EXPECT_THROW(kSynthesizer.make(
                     layers::Initializer(1), parse_toml(settings, "test settings"),
                     {.model_dim = 4, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8}),
                 Error)
        << settings;
  }
}

TEST(RowChunks, GiveTheDropoutOfTheAttentionKernel) {
  const ops::AttentionDropout dropout{0.3, 77};
  const Tensor all = ops::attention_dropout_factors({2, 3, 9, 301}, dropout);
  const Tensor some = weight_dropout({2, 3, 4, 301}, 5, dropout, at::kDouble);
  EXPECT_TRUE(at::equal(some, all.narrow(2, 5, 4)));
}

TEST(RowChunks, DoNotDependOnTheirSize) {
  const Tensor rows = ops::random_tensor({2, 11, 3}, 1), whole = ops::random_tensor({2, 3, 4}, 2);
  const auto with = [&](int64_t chunk) {
    return ops::TensorFunction([chunk](const std::vector<Tensor>& in) {
      return in_row_chunks({in[0]}, {in[1]}, chunk,
                           [](const auto& part, const auto& all, int64_t first) {
                             const Tensor places = at::arange(first, first + part[0].size(1));
                             return at::matmul(part[0], all[0]).tanh() * places.view({1, -1, 1});
                           });
    });
  };
  for (const int64_t chunk : {1, 2, 5, 11}) {
    ops::expect_agrees(with(chunk), at::kDouble, with(100), {rows, whole},
                       {.value = 1e-14, .gradient = 1e-13});
  }
}

}  // namespace
}  // namespace lra::mixers
