#include "models/encoder.h"

#include "mixers/all.h"
#include "ops/attention/dense_attention.h"
#include "ops/test_tensors.h"

namespace lra::models {
namespace {

using at::Tensor;

ModelConfig small_config() {
  ModelConfig config;
  config.layers = 2;
  config.heads = 2;
  config.embed_dim = 12;
  config.qkv_dim = 8;
  config.mlp_dim = 20;
  return config;
}

std::shared_ptr<Encoder> make(const ModelConfig& config) {
  return std::make_shared<Encoder>(layers::Initializer(1), config, mixers::kTransformer,
                                   ConfigTable(), 50);
}

using Parameters = torch::OrderedDict<std::string, Tensor>;

Tensor normalised(const Tensor& x, const Parameters& p, const std::string& name) {
  return at::layer_norm(x, {x.size(-1)}, p[name + ".weight"], p[name + ".bias"], 1e-6);
}

// One pre-LN block with exact attention, from library calls.
Tensor block(const Tensor& x, const Parameters& p, const std::string& layer,
             const Tensor& allowed) {
  const Tensor qkv = at::linear(normalised(x, p, layer + "norm1"), p[layer + "mixer.qkv.weight"])
                         .view({x.size(0), x.size(1), 3, 2, 4});
  const Tensor mixed =
      ops::dense_attention(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), allowed);
  const Tensor y = x + at::linear(mixed.flatten(2), p[layer + "mixer.output.weight"]);
  const Tensor hidden = at::linear(normalised(y, p, layer + "norm2"), p[layer + "mlp.fc1.weight"],
                                   p[layer + "mlp.fc1.bias"]);
  return y + at::linear(at::gelu(hidden, "tanh"), p[layer + "mlp.fc2.weight"],
                        p[layer + "mlp.fc2.bias"]);
}

TEST(Encoder, AgreesWithTheCompositionOfItsParts) {
  const auto encoder = make(small_config());
  const Tensor x = ops::random_tensor({3, 17, 12}, 2);
  Tensor mask = at::ones({3, 17}, at::kByte);
  mask[1].narrow(0, 9, 8).fill_(0);
  const Tensor allowed =
      ops::masks_allow(at::ones({1, 1, 17, 17}, at::kBool), {.keys = mask, .queries = mask});
  encoder->to(at::kDouble);
  const Parameters p = encoder->named_parameters();
  const Tensor expected =
      normalised(block(block(x, p, "layers_0.", allowed), p, "layers_1.", allowed), p, "norm");
  EXPECT_LE(ops::relative_error(encoder->forward(x, {{mask}}, {}), expected), 1e-6);
  encoder->to(at::kFloat);
  EXPECT_LE(ops::relative_error(encoder->forward(x.to(at::kFloat), {{mask}}, {}), expected), 1e-5);
}

TEST(Encoder, StartsFromItsDistributions) {
  ModelConfig config = small_config();
  config.layers = 1;
  config.embed_dim = 128;
  config.mlp_dim = 256;
  const Parameters p = make(config)->named_parameters();
  const double bound = std::sqrt(6.0 / (128 + 256));
  for (const char* name : {"layers_0.mlp.fc1", "layers_0.mlp.fc2"}) {
    const Tensor weight = p[std::string(name) + ".weight"], bias = p[std::string(name) + ".bias"];
    EXPECT_LE(weight.abs().max().item<double>(), bound) << name;
    EXPECT_NEAR(weight.std().item<double>(), bound / std::sqrt(3.0), 0.02 * bound) << name;
    EXPECT_NEAR(bias.std().item<double>(), 1e-6, 3e-7) << name;
  }
  for (const char* name : {"layers_0.norm1", "layers_0.norm2", "norm"}) {
    EXPECT_TRUE(p[std::string(name) + ".weight"].eq(1).all().item<bool>()) << name;
    EXPECT_TRUE(p[std::string(name) + ".bias"].eq(0).all().item<bool>()) << name;
  }
}

TEST(Encoder, RefusesHeadsThatDoNotDivide) {
  ModelConfig config = small_config();
  config.heads = 3;
  try {
    make(config);
    FAIL() << "made an encoder with 3 heads on a width of 8";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "model.heads: 3 heads do not divide qkv_dim 8; set model.heads or model.qkv_dim");
    EXPECT_EQ(error.code(), ExitCode::kUserError);
  }
}

TEST(Encoder, DropsInTrainingAlone) {
  ModelConfig config = small_config();
  const Tensor x = ops::random_tensor({3, 17, 12}, 2, at::kFloat);
  const StepRandom training{.training = true, .seed = 3, .step = 4};
  const auto changed = [&] {
    const auto encoder = make(config);
    return !at::equal(encoder->forward(x, {}, training), encoder->forward(x, {}, {}));
  };
  EXPECT_TRUE(changed());
  config.dropout = 0;
  EXPECT_TRUE(changed()) << "attention dropout is on";
  config.attention_dropout = 0;
  EXPECT_FALSE(changed());
}

TEST(StepRandom, GivesEveryPlaceItsOwnKey) {
  std::set<uint64_t> keys;
  for (const int64_t step : {0, 1}) {
    for (const uint64_t seed : {0, 1}) {
      for (uint32_t layer = 0; layer < 4; ++layer) {
        for (uint32_t place = 0; place < 4; ++place) {
          keys.insert(StepRandom{.training = true, .seed = seed, .step = step}.key(layer, place));
        }
      }
    }
  }
  EXPECT_EQ(keys.size(), size_t{2 * 2 * 4 * 4});
}

}  // namespace
}  // namespace lra::models
