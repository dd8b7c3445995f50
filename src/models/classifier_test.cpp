#include "models/classifier.h"

#include <map>

#include "io/toml.h"
#include "layers/positions.h"
#include "mixers/all.h"
#include "ops/test_tensors.h"

namespace lra::models {
namespace {

using at::Tensor;

SequenceClassifier make(const TaskShape& shape, const ModelConfig& config, const std::string& mixer,
                        const char* settings = "", uint64_t seed = 1) {
  return {shape, config, mixers::find_mixer(mixer), parse_toml(settings, "model.toml"), seed};
}

// The closed form of the reference, written from the layer sizes.
int64_t expected_parameters(const TaskShape& shape, const ModelConfig& c, int64_t mixer_extra) {
  const bool cls = c.pooling == "cls";
  const int64_t norm = 2 * c.embed_dim;
  const int64_t attention = 4 * c.embed_dim * c.qkv_dim + mixer_extra;
  const int64_t mlp = 2 * c.embed_dim * c.mlp_dim + c.mlp_dim + c.embed_dim;
  const int64_t positions =
      c.positions == "learned" ? (shape.length + (cls ? 1 : 0)) * c.embed_dim : 0;
  const int64_t head = (c.embed_dim + 1) * c.mlp_dim + (c.mlp_dim + 1) * shape.num_classes;
  return (shape.vocabulary + (cls ? 1 : 0)) * c.embed_dim + positions +
         c.layers * (2 * norm + attention + mlp) + norm + head;
}

struct ReferenceModel {
  const char* mixer;
  const char* settings;
  int64_t mixer_extra, parameters;
};

void expect_counts(const TaskShape& shape, const ModelConfig& config,
                   std::initializer_list<ReferenceModel> references) {
  for (const ReferenceModel& r : references) {
    const int64_t count = make(shape, config, r.mixer, r.settings).num_parameters();
    EXPECT_EQ(count, r.parameters) << r.mixer;
    EXPECT_EQ(count, expected_parameters(shape, config, r.mixer_extra)) << r.mixer;
  }
}

TEST(SequenceClassifier, HasTheParameterCountsOfTheReleaseOnListOps) {
  ModelConfig config;
  config.heads = 8;
  config.embed_dim = config.qkv_dim = 512;
  expect_counts({.length = 2000, .vocabulary = 17, .num_classes = 10}, config,
                {{"transformer", "", 0, 8948746},
                 {"local", "", 0, 8948746},
                 {"linformer", "rank = 16", 2001 * 16, 9076810},
                 {"linear_transformer", "", 0, 8948746}});
}

TEST(SequenceClassifier, HasTheParameterCountsOfTheReleaseOnText) {
  expect_counts({.length = 1000, .vocabulary = 257, .num_classes = 2}, ModelConfig(),
                {{"transformer", "", 0, 3486722}, {"linformer", "rank = 16", 1001 * 16, 3550786}});
}

TEST(SequenceClassifier, HasTheParameterCountsOfTheReleaseOnImages) {
  ModelConfig config;
  config.layers = 1;
  config.heads = 8;
  config.embed_dim = config.mlp_dim = 128;
  config.qkv_dim = 64;
  config.positions = "learned";
  const TaskShape shape{.length = 1024, .vocabulary = 256, .num_classes = 10, .has_padding = false};
  expect_counts(shape, config,
                {{"transformer", "", 0, 248458}, {"linformer", "rank = 16", 1025 * 16, 264858}});
  config.pooling = "mean";
  config.heads = 2;
  expect_counts(shape, config, {{"local", "", 0, 248202}});
}

ModelConfig small_config(const std::string& pooling) {
  ModelConfig config;
  config.layers = config.heads = 2;
  config.embed_dim = 12;
  config.qkv_dim = 8;
  config.mlp_dim = 20;
  config.pooling = pooling;
  return config;
}

constexpr TaskShape kSmallShape{.length = 40, .vocabulary = 11, .num_classes = 3};
constexpr int64_t kBatch = 4;

// Random ids from 1 to 10 in the first `lengths` positions of each row, `padding` behind.
ModelInput batch_of(const std::vector<int32_t>& lengths, int64_t length, int32_t padding) {
  Tensor tokens = at::full({kBatch, length}, padding, at::kInt);
  for (int64_t b = 0; b < kBatch; ++b) {
    RandomStream stream(static_cast<uint64_t>(b));
    for (int32_t i = 0; i < lengths[b]; ++i) {
      tokens[b][i] = static_cast<int32_t>(1 + stream.below(10));
    }
  }
  return {tokens, at::tensor(lengths, at::kInt)};
}

TEST(SequenceClassifier, HasTheParameterCountOfTheReleaseOnRetrieval) {
  ModelConfig config;
  config.embed_dim = config.qkv_dim = 128;
  config.mlp_dim = 512;
  config.pooling = "first";
  config.classifier = "mlp3";
  config.pair_features = "concat";
  const TaskShape shape{.length = 4000, .vocabulary = 257, .num_classes = 2, .num_towers = 2};
  EXPECT_EQ(make(shape, config, "transformer").num_parameters(), 1087618);
}

TEST(SequenceClassifier, EncodesBothDocumentsWithTheSameWeightsAndNoExchange) {
  ModelConfig config{.layers = 1, .heads = 2, .embed_dim = 8, .qkv_dim = 8, .mlp_dim = 16};
  const TaskShape shape{.length = 6, .vocabulary = 9, .num_classes = 2, .num_towers = 2};
  const auto model = make(shape, config, "transformer");
  const Tensor a = at::randint(1, 9, {1, 6}, at::kInt), b = at::randint(1, 9, {1, 6}, at::kInt);
  const at::NoGradGuard no_grad;
  const Tensor same = model.forward({at::cat({a, a}), {}}, {});
  const Tensor pair = model.forward({at::cat({a, b}), {}}, {});
  const Tensor batch = model.forward({at::cat({a, a, a, b}), {}}, {});
  EXPECT_TRUE(at::allclose(batch, at::cat({same, pair}), 1e-5, 1e-6));
  EXPECT_FALSE(at::allclose(same, pair, 1e-3, 1e-4));
}

TEST(SequenceClassifier, NamesItsParametersAsPyTorchDoes) {
  ModelConfig config = small_config("cls");
  config.layers = 1;
  std::vector<std::string> names;
  for (const auto& [name, tensor, group] :
       make(kSmallShape, config, "transformer").parameter_list()) {
    names.push_back(name);
  }
  const std::string layer = "encoder.layers.0.";
  const std::vector<std::string> expected = {
      "embedding.token",          "embedding.cls",
      layer + "norm1.weight",     layer + "norm1.bias",
      layer + "mixer.qkv.weight", layer + "mixer.output.weight",
      layer + "norm2.weight",     layer + "norm2.bias",
      layer + "mlp.fc1.weight",   layer + "mlp.fc1.bias",
      layer + "mlp.fc2.weight",   layer + "mlp.fc2.bias",
      "encoder.norm.weight",      "encoder.norm.bias",
      "head.hidden.weight",       "head.hidden.bias",
      "head.output.weight",       "head.output.bias"};
  std::sort(names.begin(), names.end());
  std::vector<std::string> sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(names, sorted);
}

TEST(SequenceClassifier, IgnoresWhatAndHowMuchPaddingFollows) {
  const std::vector<int32_t> lengths = {30, 17, 1, 23};
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    for (const char* pooling : {"cls", "mean"}) {
      SCOPED_TRACE(testing::Message() << spec->name << " " << pooling);
      const auto model = make(kSmallShape, small_config(pooling), std::string(spec->name));
      const Tensor expected = model.forward(batch_of(lengths, 30, 0), {});
      EXPECT_LE(ops::relative_error(model.forward(batch_of(lengths, 30, 7), {}), expected), 1e-6);
      EXPECT_LE(ops::relative_error(model.forward(batch_of(lengths, 40, 0), {}), expected), 1e-5);
    }
  }
}

TEST(SequenceClassifier, TreatsEveryPositionAsValidWithoutLengths) {
  for (const char* pooling : {"cls", "mean"}) {
    const auto model = make(kSmallShape, small_config(pooling), "transformer");
    ModelInput batch = batch_of({30, 30, 30, 30}, 30, 0);
    const Tensor expected = model.forward(batch, {});
    batch.lengths_B = Tensor();
    EXPECT_TRUE(at::equal(model.forward(batch, {}), expected));
    // Positions that only a mask would hide.
    const ModelInput padded = batch_of({30, 17, 1, 23}, 30, 0);
    EXPECT_FALSE(
        at::equal(model.forward({.tokens_BL = padded.tokens_BL}, {}), model.forward(padded, {})));
  }
}

TEST(SequenceClassifier, KeepsClsValidInAnEmptyExample) {
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    SCOPED_TRACE(spec->name);
    const auto model = make(kSmallShape, small_config("cls"), std::string(spec->name));
    const Tensor logits = model.forward(batch_of({0, 0, 0, 0}, 9, 5), {});
    EXPECT_TRUE(logits.isfinite().all().item<bool>());
    (logits * ops::loss_weights(logits)).sum().backward();
    for (const auto& [name, parameter, group] : model.parameter_list()) {
      if (name != "embedding.cls" && name.find("mixer.output") == std::string::npos) continue;
      EXPECT_GT(parameter.grad().abs().max().item<double>(), 0) << name;
    }
  }
}

// Blocks through a model that was made for one, each with the positions it has in the whole.
Tensor logits_by_hand(const std::string& mixer, const ModelConfig& config, const ModelInput& batch,
                      const std::vector<int32_t>& lengths, int64_t width) {
  ModelConfig of_block = config;
  of_block.receptive_field = 0;
  TaskShape shape = kSmallShape;
  shape.length = width;
  auto model = make(shape, of_block, mixer);
  const int64_t cls = config.pooling == "cls" ? 1 : 0;
  const Tensor table = layers::sinusoid_table(kSmallShape.length + width + cls, config.embed_dim);
  Tensor logits = at::zeros({kBatch, kSmallShape.num_classes});
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t first = 0; first < lengths[b]; first += width) {
      const int64_t count = std::min<int64_t>(width, lengths[b] - first);
      model.set_positions(at::cat({table.narrow(0, 0, cls), table.narrow(0, cls + first, width)}));
      const Tensor tokens = batch.tokens_BL.narrow(0, b, 1).narrow(1, first, count);
      logits[b] += model.forward({.tokens_BL = tokens}, {})[0] * (double(count) / lengths[b]);
    }
  }
  return logits;
}

TEST(SequenceClassifier, ReadsTheMeanOfBlocksThatDoNotSeeEachOther) {
  const std::vector<int32_t> lengths = {37, 20, 1, 11};
  const at::NoGradGuard no_grad;
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    for (const char* pooling : {"cls", "mean", "first"}) {
      SCOPED_TRACE(testing::Message() << spec->name << " " << pooling);
      ModelConfig config = small_config(pooling);
      config.classifier = "linear";  // so that the mean of logits is the logit of the mean
      config.receptive_field = 10;
      const std::string name(spec->name);
      const auto model = make(kSmallShape, config, name);
      for (const int64_t length : {37, 40}) {
        const ModelInput batch = batch_of(lengths, length, 3);
        const Tensor expected = logits_by_hand(name, config, batch, lengths, 10);
        EXPECT_LE(ops::relative_error(model.forward(batch, {}), expected), 1e-5) << length;
      }
      const ModelInput whole = batch_of({40, 40, 40, 40}, 40, 0);
      EXPECT_TRUE(at::allclose(model.forward({.tokens_BL = whole.tokens_BL}, {}),
                               model.forward(whole, {}), 1e-4, 1e-5))
          << "without lengths";
    }
  }
}

TEST(SequenceClassifier, TrainsInBlocksAndTakesExamplesWithoutTokens) {
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    for (const char* pooling : {"cls", "mean"}) {
      SCOPED_TRACE(testing::Message() << spec->name << " " << pooling);
      ModelConfig config = small_config(pooling);
      config.receptive_field = 10;
      const auto model = make(kSmallShape, config, std::string(spec->name));
      const ModelInput batch = batch_of({40, 0, 13, 10}, 40, 0);
      const Tensor logits = model.forward(batch, {.training = true});
      EXPECT_TRUE(logits.isfinite().all().item<bool>());
      config.classifier = "linear";  // whose bias begins at 0
      const auto linear = make(kSmallShape, config, std::string(spec->name));
      EXPECT_EQ(linear.forward(batch, {.training = true})[1].eq(0).all().item<bool>(),
                std::string_view(pooling) == "mean")
          << "the mean over no token";
      (logits * ops::loss_weights(logits)).sum().backward();
      for (const auto& [name, parameter, group] : model.parameter_list()) {
        EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>()) << name;
        if (spec->name != "transformer") continue;
        EXPECT_GT(parameter.grad().abs().max().item<double>(), 0) << name;
      }
    }
  }
}

// Logits of a batch, and the statistics that batch norm learns from it.
std::pair<Tensor, Tensor> trained_on(const ModelConfig& config, const ModelInput& batch) {
  const auto model = make(kSmallShape, config, "transformer");
  const Tensor logits = model.forward(batch, {.training = true});
  return {logits, layers::take_sums(model.running_statistics())};
}

TEST(SequenceClassifier, NormalizesBlocksOverTokensAlone) {
  for (const char* pooling : {"cls", "mean", "first"}) {
    for (const std::vector<int32_t>& lengths :
         {std::vector<int32_t>{13, 1, 20, 10}, std::vector<int32_t>{13, 0, 20, 10}}) {
      SCOPED_TRACE(testing::Message() << pooling << ", a row of " << lengths[1]);
      ModelConfig config = small_config(pooling);
      config.receptive_field = 10;
      config.norm = "batch";
      config.dropout = config.attention_dropout = 0;
      const auto [logits, sums] = trained_on(config, batch_of(lengths, 20, 0));
      const auto [padded, padded_sums] = trained_on(config, batch_of(lengths, 40, 3));
      EXPECT_TRUE(at::equal(logits, padded));
      EXPECT_TRUE(at::equal(sums, padded_sums));
      const int64_t blocks = config.pooling == "cls" ? 6 : 0;
      EXPECT_EQ(sums[0].item<double>(), 43 + lengths[1] + blocks) << "positions that were counted";
    }
  }
}

TEST(SequenceClassifier, ComputesOnlyBlocksWithTokensAndTheFirstOfEachRow) {
  ModelConfig config = small_config("cls");
  config.receptive_field = 10;
  const auto model = make(kSmallShape, config, "transformer");
  EXPECT_EQ(model.num_positions(batch_of({37, 20, 1, 0}, 40, 0)), (4 + 2 + 1 + 1) * 11);
  EXPECT_EQ(model.num_positions({.tokens_BL = at::zeros({3, 25}, at::kInt)}), 3 * 3 * 11);
  EXPECT_EQ(model.num_positions(batch_of({3, 2, 1, 0}, 7, 0)), 4 * 8) << "not cut";
}

// A norm of each head turns scores into signs where keys are as narrow as the small models' own: a
// gradient of almost 0, which no precision keeps.
const char* wide_keys(std::string_view mixer) {
  const bool norm_of_heads = mixer == "gla" || mixer == "retnet" || mixer == "gated_deltanet";
  return norm_of_heads ? "num_heads = 2\nkey_dim = 32\nvalue_dim = 32" : "";
}

// bfloat16 moves logits by about 2^-8 of their size per layer and operator; a mixer that hashes may
// move tokens into other buckets.
TEST(SequenceClassifier, GivesFloat32LogitsOfBf16ActivationsNearThoseOfFp32) {
  const ModelInput batch = batch_of({30, 17, 1, 23}, 30, 0);
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    for (const char* pooling : {"cls", "mean"}) {
      SCOPED_TRACE(testing::Message() << spec->name << " " << pooling);
      const SequenceClassifier bf16(kSmallShape, small_config(pooling), *spec,
                                    parse_toml(wide_keys(spec->name), "model.toml"), 1,
                                    {.activations = at::kBFloat16});
      const SequenceClassifier fp32(kSmallShape, small_config(pooling), *spec,
                                    parse_toml(wide_keys(spec->name), "model.toml"), 1);
      const Tensor logits = bf16.forward(batch, {.training = true}),
                   same = fp32.forward(batch, {.training = true});
      EXPECT_EQ(logits.scalar_type(), at::kFloat);
      EXPECT_FALSE(at::equal(logits, same));
      EXPECT_LE(((logits - same).norm() / same.norm()).item<double>(),
                spec->name == "reformer" ? 0.2 : 0.05);
      (logits * ops::loss_weights(logits)).sum().backward();
      for (const auto& [name, parameter, group] : bf16.parameter_list()) {
        EXPECT_EQ(parameter.scalar_type(), at::kFloat) << name;
        EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>()) << name;
      }
    }
  }
}

// Equal tokens give equal terms to every sum over tokens: in bfloat16 such a sum stops growing at
// 256 of them, and most of a gradient is missing.
TEST(SequenceClassifier, SumsTheGradientsOfEqualTokensInBf16) {
  constexpr TaskShape kLongShape{.length = 1000, .vocabulary = 11, .num_classes = 3};
  const ModelInput batch{.tokens_BL = at::full({3, kLongShape.length}, 7, at::kInt)};
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    SCOPED_TRACE(spec->name);
    const auto gradients = [&](at::ScalarType activations) {
      const SequenceClassifier model(kLongShape, small_config("mean"), *spec,
                                     parse_toml(wide_keys(spec->name), "model.toml"), 1,
                                     {.activations = activations});
      for (auto& [name, parameter, group] : model.parameter_list()) {
        const at::NoGradGuard no_grad;  // no unit of the head at 0, where it would switch
        if (name == "head.hidden.bias") parameter.fill_(10);
      }
      const Tensor logits = model.forward(batch, {});
      (logits * ops::loss_weights(logits)).sum().backward();
      std::map<std::string, Tensor> found;
      for (const auto& [name, parameter, group] : model.parameter_list()) {
        found[name] = parameter.grad();
      }
      return found;
    };
    const auto fp32 = gradients(at::kFloat), bf16 = gradients(at::kBFloat16);
    double largest = 0;
    for (const auto& [name, wanted] : fp32) {
      if (wanted.defined()) largest = std::max(largest, wanted.norm().item<double>());
    }
    for (const auto& [name, wanted] : fp32) {
      // The slowest oscillator outgrows the others where all tokens are equal, and the norm behind
      // it takes away what changes along it: a gradient of almost 0.
      const bool cancels = spec->name == "linoss" && name.ends_with("mixer.a");
      if (!wanted.defined() || cancels) continue;
      const double size = std::max(wanted.norm().item<double>(), 0.01 * largest);
      EXPECT_LE((bf16.at(name) - wanted).norm().item<double>() / size, 0.1) << name;
    }
  }
}

TEST(SequenceClassifier, HasNoRandomnessInEvaluation) {
  const ModelInput batch = batch_of({30, 17, 1, 23}, 30, 0);
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    const auto model = make(kSmallShape, small_config("mean"), std::string(spec->name));
    const Tensor first = model.forward(batch, {.training = false, .seed = 1, .step = 0});
    const Tensor second = model.forward(batch, {.training = false, .seed = 2, .step = 9});
    EXPECT_TRUE(at::equal(first, second)) << spec->name;
  }
}

TEST(SequenceClassifier, DrawsDropoutFromSeedAndStep) {
  const ModelInput batch = batch_of({30, 17, 1, 23}, 30, 0);
  const auto model = make(kSmallShape, small_config("mean"), "transformer");
  const auto run = [&](uint64_t seed, int64_t step) {
    return model.forward(batch, {.training = true, .seed = seed, .step = step});
  };
  EXPECT_TRUE(at::equal(run(1, 5), run(1, 5)));
  EXPECT_FALSE(at::equal(run(1, 5), run(1, 6)));
  EXPECT_FALSE(at::equal(run(1, 5), run(2, 5)));
}

TEST(SequenceClassifier, HasTheWeightsOfItsSeed) {
  const auto weights = [](uint64_t seed) {
    return make(kSmallShape, small_config("cls"), "linformer", "", seed).parameter_list();
  };
  const auto first = weights(1), again = weights(1), other = weights(2);
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(at::equal(first[i].tensor, again[i].tensor)) << first[i].name;
    if (first[i].name.ends_with("fc1.weight") || first[i].name == "embedding.token") {
      EXPECT_FALSE(at::equal(first[i].tensor, other[i].tensor)) << first[i].name;
    }
  }
}

// Settings under which 40 tokens have several blocks.
const char* mixer_settings_of(std::string_view name) {
  if (name == "sinkhorn" || name == "bigbird") return "block = 8";
  return "";
}

// True for weights that CLS does not reach: when only the vector of a global token is read, the
// last layer's local projections have no effect.
bool is_unread(std::string_view model, std::string_view pooling, const std::string& name) {
  return model == "longformer" && pooling == "cls" && name == "encoder.layers.1.mixer.qkv.weight";
}

TEST(SequenceClassifier, TrainsEveryParameter) {
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    for (const char* pooling : {"cls", "mean"}) {
      ModelConfig config = small_config(pooling);
      config.positions = "learned";
      const auto model =
          make(kSmallShape, config, std::string(spec->name), mixer_settings_of(spec->name));
      const Tensor logits = model.forward(batch_of({40, 40, 40, 40}, 40, 0), {.training = true});
      (logits * ops::loss_weights(logits)).sum().backward();
      for (const auto& [name, parameter, group] : model.parameter_list()) {
        ASSERT_TRUE(parameter.grad().defined()) << spec->name << " " << name;
        if (is_unread(spec->name, pooling, name)) continue;
        EXPECT_GT(parameter.grad().abs().max().item<double>(), 0) << spec->name << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace lra::models
