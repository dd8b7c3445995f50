// Every preset of every pair of task and model: it resolves, builds a model of the size that the
// definitions give, and takes a training step.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/config.h"
#include "base/rng.h"
#include "mixers/all.h"
#include "models/classifier.h"
#include "ops/adam.h"
#include "tasks/all.h"
#include "training/ranks/flat_parameters.h"
#include "training/run/test_runs.h"
#include "training/settings/presets.h"
#include "training/settings/run_config.h"

namespace lra::training {
namespace {

int64_t integer(const RunConfig& run, const char* setting) {
  return std::get<int64_t>(run.mixer_settings.find(setting)->value);
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Sizes {
  int64_t D, Q, M, H;  // width of the stream, of all heads, of the feed-forward layer; heads
  int64_t P;           // positions inside the model, CLS included
};

// Synthesizer: the scores of each variant, then values and output, and queries and keys too with
// the dot product.
int64_t synthesizer_parameters(const RunConfig& run, const Sizes& s) {
  const std::string variant = std::get<std::string>(run.mixer_settings.find("variant")->value);
  const bool dot_product = std::get<bool>(run.mixer_settings.find("dot_product")->value);
  const int64_t projections = (dot_product ? 4 : 2) * s.D * s.Q, hidden = s.Q * s.D + s.Q;
  if (variant == "random") return projections + s.H * s.P * s.P;
  if (variant == "factorized_random") return projections + 2 * s.H * s.P * integer(run, "rank");
  if (variant == "dense") return projections + hidden + s.P * s.Q + s.H * s.P;
  const auto side = static_cast<int64_t>(std::ceil(std::sqrt(s.P)));
  return projections + hidden + (side + ceil_div(s.P, side)) * (s.Q + s.H);
}

// Number of parameters of the paper's mechanisms by their definitions. Four projections, D -> Q for
// queries, keys and values and Q -> D back, are common to all that say nothing else. Shapes of all
// layers: docs/mixers.md, which tests/parity compares. -1: a later one.
int64_t mixer_parameters(const RunConfig& run, const Sizes& s) {
  const int64_t attention = 4 * s.D * s.Q;
  const std::string& model = run.model;
  if (model == "linformer") return attention + s.P * integer(run, "rank");
  if (model == "synthesizer") return synthesizer_parameters(run, s);
  // Queries and keys are one.
  if (model == "reformer") return attention - s.D * s.Q;
  // Global tokens have queries, keys and values of their own.
  if (model == "longformer")
    return attention + (integer(run, "global_tokens") > 0 ? 3 : 0) * s.D * s.Q;
  // A row of sort scores per head and block.
  if (model == "sinkhorn") return attention + ceil_div(s.P, integer(run, "block")) * s.Q;
  for (const char* plain : {"transformer", "local", "sparse_transformer", "bigbird",
                            "linear_transformer", "performer"}) {
    if (model == plain) return attention;
  }
  return -1;
}

// Number of parameters in the authors' code, which has other parameters in three mechanisms
// (docs/deviations.md, 7b, 9c, 10d and 10e).
int64_t released_mixer_parameters(const RunConfig& run, const Sizes& s) {
  constexpr int64_t kSortColumns = 25;
  const int64_t attention = 4 * s.D * s.Q;
  if (run.model == "longformer") return attention + 3 * s.D * s.Q;  // without a global token too
  if (run.model == "reformer") return 2 * s.D * s.D;                // D -> D, and no output
  if (run.model == "sinkhorn") return attention + kSortColumns * s.Q / s.H;  // for all heads
  return mixer_parameters(run, s);
}

int64_t head_parameters(const models::ModelConfig& m, int64_t input, int64_t classes) {
  const auto layer = [](int64_t in, int64_t out) { return in * out + out; };
  if (m.classifier == "linear") return layer(input, classes);
  if (m.classifier == "mlp") return layer(input, m.mlp_dim) + layer(m.mlp_dim, classes);
  const int64_t half = m.mlp_dim / 2;
  return layer(input, m.mlp_dim) + layer(m.mlp_dim, half) + layer(half, classes);
}

using MixerParameters = int64_t (*)(const RunConfig& run, const Sizes& s);

// The number of parameters of the mixers of all layers.
int64_t of_mixers(const RunConfig& run, const Sizes& s, MixerParameters parameters_of) {
  const models::ModelConfig& m = run.model_config;
  const int64_t defined = parameters_of(run, s);
  if (defined >= 0) return m.layers * defined;
  int64_t sum = 0;
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    const auto made = run.mixer_spec().make(layers::Initializer(1, at::kMeta), run.mixer_settings,
                                            {.model_dim = s.D,
                                             .attention = {.heads = s.H, .head_dim = s.Q / s.H},
                                             .max_length = s.P,
                                             .layer = layer});
    for (const at::Tensor& parameter : made->parameters()) sum += parameter.numel();
  }
  return sum;
}

int64_t expected_parameters(const RunConfig& run, const TaskShape& shape,
                            MixerParameters parameters_of = mixer_parameters) {
  const models::ModelConfig& m = run.model_config;
  const bool has_cls = m.pooling == "cls";
  const Sizes s{m.embed_dim, m.qkv_dim, m.mlp_dim, m.heads, shape.length + has_cls};
  const int64_t norm = m.norm == "scale" ? 1 : m.norm == "rms" ? s.D : 2 * s.D;
  const int64_t last_norm = m.norm_placement == "pre" ? norm : 0;
  const int64_t feed_forward = m.feed_forward == "none" ? 0 : norm + 2 * s.D * s.M + s.M + s.D;
  const int64_t embedding = (shape.values ? 2 : shape.vocabulary) * s.D + (has_cls ? s.D : 0) +
                            (m.positions == "learned" ? s.P * s.D : 0);
  const int64_t vectors = shape.num_towers == 1 ? 1 : m.pair_features == "nli" ? 4 : 2;
  return embedding + of_mixers(run, s, parameters_of) + m.layers * (norm + feed_forward) +
         last_norm + head_parameters(m, vectors * s.D, shape.num_classes);
}

// Above the blocks of all mixers, yet short enough to build the published widths in no time.
constexpr int64_t kShortLength = 70;

struct Built {
  RunConfig run;
  TaskShape shape;
  models::SequenceClassifier model;
};

Built built(const std::string& task, const std::string& model, const std::string& preset,
            int64_t most_layers, at::Device device = at::kCPU) {
  RunConfig run = resolve_run(task, model, preset, 0, {}, {});
  run.model_config.layers = std::min(run.model_config.layers, most_layers);
  TaskShape shape = run.make_task()->shape();
  shape.length = kShortLength;
  models::SequenceClassifier classifier(shape, run.model_config, run.mixer_spec(),
                                        run.mixer_settings, run.seed, {.device = device});
  return {std::move(run), shape, std::move(classifier)};
}

template <typename Visit>
void for_every_pair(Visit visit) {
  for (const tasks::TaskSpec* task : tasks::all_tasks()) {
    for (const std::string& model : mixers::mixer_names()) {
      SCOPED_TRACE(std::string(task->name) + " " + model);
      visit(std::string(task->name), model);
    }
  }
}

TEST(Presets, BuildModelsOfTheSizeThatTheDefinitionsGive) {
  for_every_pair([&](const std::string& task, const std::string& model) {
    for (const std::string& preset : preset_names(task, model)) {
      const Built b = built(task, model, preset, 2, at::kMeta);  // more layers are more of the same
      EXPECT_EQ(b.model.num_parameters(), expected_parameters(b.run, b.shape)) << preset;
    }
  });
}

TEST(Presets, LikeAnotherModelHaveItsSettingsButNotItsMixers) {
  const auto around_mixer = [](const char* task, const char* model) {
    auto settings = setting_texts(resolve_run(task, model, "small", 0, {}, {}).to_table());
    std::erase_if(settings, [](const auto& setting) {
      return setting.first.starts_with("mixer.") || setting.first.starts_with("run.");
    });
    return settings;
  };
  for (const char* task : {"listops", "text", "image", "pathx"}) {
    EXPECT_EQ(around_mixer(task, "mamba2"), around_mixer(task, "mamba")) << task;
    auto of_lru = around_mixer(task, "lru");
    EXPECT_EQ(of_lru["model.norm"], "\"batch\"") << "its own settings come later";
  }
  const auto run = resolve_run("text", "min_gru", "small", 0, {}, {});
  EXPECT_EQ(run.mixer_settings.find("blocks"), nullptr) << "a setting of Mamba's mixer";
}

// Parameters of every released model at full length, counted on the authors' code.
TEST(Presets, OfTheReleaseHaveTheSizesOfTheAuthorsCode) {
  const auto expect_size = [](const char* task, const char* model, int64_t parameters) {
    const RunConfig run = resolve_run(task, model, "release", 0, {}, {});
    EXPECT_EQ(expected_parameters(run, run.make_task()->shape(), released_mixer_parameters),
              parameters)
        << task << " " << model;
  };
  static constexpr const char* kTasks[] = {"listops", "text", "retrieval", "image", "pathfinder"};
  struct Row {
    const char* model;
    int64_t parameters[std::size(kTasks)];
  };
  constexpr Row kRows[] = {
      {"transformer", {8948746, 3486722, 1087618, 248458, 26530}},
      {"local", {8948746, 3486722, 1087618, 248202, 54338}},
      {"sparse_transformer", {8948746, 3486722, 1087618, 248458, 13666}},
      {"longformer", {12094474, 4273154, 1284226, 545418, 21026}},
      {"linformer", {9076810, 3550786, 1343618, 264858, 30050}},
      {"reformer", {6851594, 2962434, 956546, 154058, 54338}},
      {"sinkhorn", {8424202, 3228162, 1090818, 50570, 21258}},
      {"synthesizer", {137076778, 19518738, 257087618, 8653458, 8442946}},
      {"bigbird", {8948746, 3486722, 1087618, 248458, 87874}},
      {"linear_transformer", {8948746, 3486722, 1087618, 248458, 116098}},
      {"performer", {8948746, 3486722, 1087618, 248458, 26530}},
  };
  for (const Row& row : kRows) {
    for (size_t t = 0; t < std::size(kTasks); ++t) {
      expect_size(kTasks[t], row.model, row.parameters[t]);
    }
  }
  expect_size("pathfinder64", "transformer", 153186);
  expect_size("pathx", "transformer", 537954);
  expect_size("pathfinder256", "transformer", 2119266);
}

// Tokens and lengths as a batch of the task has them; lengths differ where there is padding.
models::ModelInput random_batch(const TaskShape& shape, int64_t rows) {
  if (shape.values)
    return {.values_BLC = at::linspace(-1, 1, rows * shape.length).view({rows, -1, 1})};
  models::ModelInput batch{.tokens_BL = at::zeros({rows, shape.length}, at::kInt), .lengths_B = {}};
  RandomStream stream(1);
  if (shape.has_padding) batch.lengths_B = at::empty({rows}, at::kInt);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t length = shape.has_padding ? shape.length - 9 * r : shape.length;
    if (shape.has_padding) batch.lengths_B[r] = static_cast<int32_t>(length);
    auto* tokens = batch.tokens_BL[r].mutable_data_ptr<int32_t>();
    for (int64_t i = 0; i < length; ++i) {
      tokens[i] =
          static_cast<int32_t>(1 + stream.below(static_cast<uint32_t>(shape.vocabulary) - 1));
    }
  }
  return batch;
}

TEST(Presets, OfLaptopsTakeATrainingStep) {
  const OneThread one_thread;
  constexpr int64_t kExamples = 2;
  for_every_pair([](const std::string& task, const std::string& model) {
    const Built b = built(task, model, "small", INT64_MAX);
    FlatParameters parameters(b.model);
    const at::Tensor before = parameters.values.clone();
    parameters.zero_gradients();
    const at::Tensor logits = b.model.forward(random_batch(b.shape, kExamples * b.shape.num_towers),
                                              {.training = true, .seed = 1, .step = 3});
    EXPECT_EQ(logits.sizes(), at::IntArrayRef({kExamples, b.shape.num_classes}));
    at::cross_entropy_loss(logits, at::zeros({kExamples}, at::kLong)).backward();
    EXPECT_GT(ops::gradient_norm(parameters.gradients), 0);
    EXPECT_TRUE(std::isfinite(ops::gradient_norm(parameters.gradients)));
    at::Tensor weights = parameters.values.narrow(0, 0, parameters.gradients.numel());
    ops::adam_step(weights, parameters.gradients, parameters.m, parameters.v,
                   {.learning_rate = b.run.train.learning_rate}, 0, 1);
    EXPECT_TRUE(parameters.values.isfinite().all().item<bool>());
    EXPECT_FALSE(at::equal(parameters.values, before));
  });
}

}  // namespace
}  // namespace lra::training
