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

bool is_set(const RunConfig& run, const char* setting) {
  return std::get<bool>(run.mixer_settings.find(setting)->value);
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

// Kernels, the skip, and a linear layer to both halves of a gate.
int64_t long_conv_parameters(const RunConfig& run, const Sizes& s) {
  const int64_t directions =
      std::get<bool>(run.mixer_settings.find("bidirectional")->value) ? 2 : 1;
  const int64_t width = integer(run, "width"), all = directions * s.P;
  EXPECT_EQ(std::get<std::string>(run.mixer_settings.find("kind")->value), "free");
  EXPECT_EQ(std::get<std::string>(run.mixer_settings.find("output")->value), "glu");
  return s.D * (width > 0 ? std::min(width, all) : all) + s.D + 2 * s.D * s.D + 2 * s.D;
}

int64_t directions(const RunConfig& run) {
  return std::get<bool>(run.mixer_settings.find("bidirectional")->value) ? 2 : 1;
}

// S4D: steps and skip, poles, an output matrix for each direction, and a gated linear unit.
int64_t s4d_parameters(const RunConfig& run, const Sizes& s) {
  const int64_t states = integer(run, "states"), poles = is_set(run, "shared_poles") ? 1 : s.D;
  const int64_t gate = 2 * s.D * s.D + 2 * s.D;
  return 2 * s.D + poles * states + (is_set(run, "bidirectional") ? 2 : 1) * s.D * states + gate;
}

// S5 and LRU: poles and steps or norms, B, C for each direction, the skip and a gate.
int64_t state_space_parameters(const RunConfig& run, const Sizes& s) {
  const bool is_s5 = run.model == "s5";
  const int64_t states = integer(run, "states") / (is_s5 ? 2 : 1);
  const int64_t of_poles = is_s5 && is_set(run, "shared_step") ? 2 * states + 1 : 3 * states;
  const int64_t matrices = (1 + (is_set(run, "bidirectional") ? 2 : 1)) * 2 * states * s.D;
  const auto output = std::get<std::string>(run.mixer_settings.find("output")->value);
  EXPECT_NE(output, "none");
  return of_poles + matrices + s.D + (output == "glu" ? 2 : 1) * (s.D * s.D + s.D);
}

// Mamba: for each direction a convolution with its bias, and for each inner channel what it
// selects, its steps, rates, biases and skip.
int64_t mamba_parameters(const RunConfig& run, const Sizes& s) {
  const int64_t states = integer(run, "states"), inner = integer(run, "expand") * s.D;
  EXPECT_EQ(integer(run, "dt_rank"), 0);
  const int64_t rank = ceil_div(s.D, 16 * integer(run, "blocks"));
  const int64_t of_channel = integer(run, "conv_width") + 1 + rank + 2 * states + rank + 1 +
                             (is_set(run, "channel_bias") ? 2 : 1) * states + 1;
  return 3 * s.D * inner + (is_set(run, "bidirectional") ? 2 : 1) * inner * of_channel;
}

// Mamba-2: with groups for each direction (arXiv:2405.21060, and the authors' code).
int64_t mamba2_parameters(const RunConfig& run, const Sizes& s) {
  const int64_t inner = integer(run, "expand") * s.D,
                heads = inner / (integer(run, "head_channels") > 0 ? integer(run, "head_channels")
                                                                   : inner / 4);
  const int64_t shared = 2 * directions(run) * integer(run, "states");
  return s.D * (2 * inner + shared + heads) + (inner + shared) * (integer(run, "conv_width") + 1) +
         3 * heads + inner + inner * s.D;
}

// Recurrences of heads, with the defaults of their widths.
int64_t recurrent_heads_parameters(const RunConfig& run, const Sizes& s) {
  EXPECT_EQ(integer(run, "key_dim") + integer(run, "value_dim"), 0);
  const int64_t heads = integer(run, "num_heads");
  if (run.model == "retnet") return 8 * s.D * s.D + 2 * s.D / heads;
  if (run.model == "gla") {
    const int64_t rank = integer(run, "rank");
    return 4 * s.D * s.D + rank * (s.D + s.D / 2) + s.D / 2 + s.D / heads;
  }
  const int64_t keys = 3 * s.D / (4 * heads), values = 2 * keys;
  return 2 * s.D * heads * keys + 3 * s.D * heads * values + 2 * s.D * heads +
         integer(run, "conv_width") * heads * (2 * keys + values) + 2 * heads + values;
}

// Number of parameters by the definitions. Four projections, D -> Q for queries, keys and values
// and Q -> D back, are common to all mechanisms that say nothing else. -1: no formula.
int64_t mixer_parameters(const RunConfig& run, const Sizes& s) {
  const int64_t attention = 4 * s.D * s.Q;
  const std::string& model = run.model;
  if (model == "linformer") return attention + s.P * integer(run, "rank");
  if (model == "synthesizer") return synthesizer_parameters(run, s);
  if (model == "s4d") return s4d_parameters(run, s);
  if (model == "s5" || model == "lru") return state_space_parameters(run, s);
  if (model == "linoss") {
    const int64_t states = integer(run, "states"), both = 1 + directions(run);
    return 2 * states + 2 * both * states * s.D + s.D + 2 * s.D * s.D + 2 * s.D;
  }
  if (model == "mega") {
    const int64_t z = integer(run, "z_dim"), v = integer(run, "v_dim");
    const bool both = std::get<bool>(run.mixer_settings.find("bidirectional")->value);
    const int64_t window = integer(run, "chunk") > 0 ? integer(run, "chunk") : s.P;
    const int64_t average = (both ? 2 : 1) * 4 * integer(run, "ema_dim") * s.D + s.D;
    const int64_t base = 2 * s.D + z + v;
    return average + (s.D + 1) * (v + base) + (v + 1) * s.D + 4 * z + 2 * window - 1;
  }
  if (model == "mamba") return mamba_parameters(run, s);
  if (model == "mamba2") return mamba2_parameters(run, s);
  if (model == "mlstm") {
    const int64_t inner = integer(run, "expand") * s.D, heads = integer(run, "num_heads");
    return 3 * s.D * inner + (integer(run, "conv_width") + 3 * integer(run, "block") + 3) * inner +
           2 * heads * (3 * inner + 1);
  }
  if (model == "hgrn2") return 4 * s.D * s.D + 2 * s.D;  // with a bound, in all but the first layer
  if (model == "gated_deltanet" || model == "retnet" || model == "gla") {
    return recurrent_heads_parameters(run, s);
  }
  if (model == "min_gru") {
    const int64_t inner = integer(run, "expand") * s.D;
    const int64_t gates = is_set(run, "forget_gate") ? 3 : 2;
    return gates * (s.D * inner + inner) + inner * s.D + s.D;
  }
  if (model == "rg_lru") {
    EXPECT_EQ(integer(run, "inner_dim"), 0);
    const int64_t convolution = (integer(run, "conv_width") + 1) * s.D;
    return 3 * (s.D * s.D + s.D) + convolution + 2 * (s.D * s.D / integer(run, "blocks") + s.D) +
           s.D;
  }
  // Queries and keys are one.
  if (model == "reformer") return attention - s.D * s.Q;
  // Global tokens have queries, keys and values of their own.
  if (model == "longformer")
    return attention + (integer(run, "global_tokens") > 0 ? 3 : 0) * s.D * s.Q;
  if (model == "long_conv") return long_conv_parameters(run, s);
  if (model == "chordmixer") {
    const int64_t hidden = integer(run, "hidden") > 0 ? integer(run, "hidden") : s.D;
    return 2 * s.D * hidden + hidden + s.D;
  }
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

int64_t expected_parameters(const RunConfig& run, const TaskShape& shape,
                            MixerParameters parameters_of = mixer_parameters) {
  const models::ModelConfig& m = run.model_config;
  const bool has_cls = m.pooling == "cls";
  const Sizes s{m.embed_dim, m.qkv_dim, m.mlp_dim, m.heads, shape.length + has_cls};
  const int64_t of_mixer = parameters_of(run, s);
  if (of_mixer < 0) return -1;
  const int64_t norm = m.norm == "scale" ? 1 : m.norm == "rms" ? s.D : 2 * s.D;
  const int64_t last_norm = m.norm_placement == "pre" ? norm : 0;
  const int64_t feed_forward = m.feed_forward == "none" ? 0 : norm + 2 * s.D * s.M + s.M + s.D;
  const int64_t embedding = (shape.values ? 2 : shape.vocabulary) * s.D + (has_cls ? s.D : 0) +
                            (m.positions == "learned" ? s.P * s.D : 0);
  const int64_t vectors = shape.num_towers == 1 ? 1 : m.pair_features == "nli" ? 4 : 2;
  const int64_t absent = run.model == "hgrn2" ? s.D : 0;  // the bound of the first layer
  return embedding + m.layers * (norm + of_mixer + feed_forward) - absent + last_norm +
         head_parameters(m, vectors * s.D, shape.num_classes);
}

// Above the blocks of all mixers, yet short enough to build the published widths in no time.
constexpr int64_t kShortLength = 70;

struct Built {
  RunConfig run;
  TaskShape shape;
  models::SequenceClassifier model;
};

Built built(const std::string& task, const std::string& model, const std::string& preset,
            int64_t most_layers) {
  RunConfig run = resolve_run(task, model, preset, 0, {}, {});
  run.model_config.layers = std::min(run.model_config.layers, most_layers);
  TaskShape shape = run.make_task()->shape();
  shape.length = kShortLength;
  models::SequenceClassifier classifier(shape, run.model_config, run.mixer_spec(),
                                        run.mixer_settings, run.seed);
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
  std::set<std::string> counted;
  for_every_pair([&](const std::string& task, const std::string& model) {
    for (const std::string& preset : preset_names(task, model)) {
      const Built b = built(task, model, preset, 2);  // more are more of the same
      const int64_t expected = expected_parameters(b.run, b.shape);
      if (expected < 0) continue;
      counted.insert(model);
      EXPECT_EQ(b.model.num_parameters(), expected) << preset;
    }
  });
  EXPECT_GE(counted.size(), 12u) << "a model of the paper lost its formula";
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
