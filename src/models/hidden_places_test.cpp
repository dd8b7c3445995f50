// A model that predicts hidden places against each row alone in plain operators, with gradients.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "io/toml.h"
#include "layers/positions.h"
#include "mixers/all.h"
#include "models/classifier.h"
#include "ops/test_tensors.h"

namespace lra::models {
namespace {

using at::Tensor;

constexpr TaskShape kMixedShape{.length = 90, .vocabulary = 11, .num_classes = 3};
constexpr int64_t kMixedLengths[] = {7, 90, 40, 8};
constexpr int64_t kMixedRows = std::size(kMixedLengths);

SequenceClassifier hidden_model(const TaskShape& shape, Output output, const std::string& pooling,
                                std::optional<int64_t> group_cost, const std::string& mixer) {
  ModelConfig config{.layers = 2, .heads = 2, .embed_dim = 12, .qkv_dim = 8, .mlp_dim = 20};
  config.pooling = pooling;
  const Execution execution{.group_cost = group_cost};
  return {shape, config, mixers::find_mixer(mixer), parse_toml("", "test"), 1, execution, output};
}

struct HiddenBatch {
  ModelInput input;
  Tensor labels_M;
};

// Every third valid place is hidden, and the last one of each row.
HiddenBatch hidden_batch() {
  Tensor tokens = at::zeros({kMixedRows, kMixedShape.length}, at::kInt);
  std::vector<int64_t> places, labels;
  std::vector<int32_t> lengths;
  RandomStream stream(5);
  for (int64_t b = 0; b < kMixedRows; ++b) {
    lengths.push_back(static_cast<int32_t>(kMixedLengths[b]));
    for (int64_t i = 0; i < kMixedLengths[b]; ++i) {
      const auto token = static_cast<int32_t>(1 + stream.below(10));
      tokens[b][i] = token;
      if (i % 3 != 1 && i + 1 != kMixedLengths[b]) continue;
      places.push_back(b * kMixedShape.length + i);
      labels.push_back(token);
    }
  }
  return {{.tokens_BL = tokens,
           .lengths_B = at::tensor(lengths, at::kInt),
           .places_M = at::tensor(places, at::kLong)},
          at::tensor(labels, at::kLong)};
}

// Adam's view of a model: all gradients, one after another.
Tensor all_gradients(const SequenceClassifier& model, const Tensor& loss) {
  for (const Parameter& p : model.parameter_list()) p.tensor.mutable_grad() = Tensor();
  loss.backward();
  std::vector<Tensor> all;
  for (const Parameter& p : model.parameter_list()) {
    all.push_back(p.tensor.grad().defined() ? p.tensor.grad().flatten()
                                            : at::zeros({p.tensor.numel()}));
  }
  return at::cat(all);
}

Tensor tensor_named(const SequenceClassifier& model, const std::string& name) {
  for (const Parameter& p : model.parameter_list()) {
    if (p.name == name) return p.tensor;
  }
  throw std::out_of_range(name);
}

// The mean cross-entropy, row by row: nothing is padded, grouped or gathered.
Tensor oracle_loss(const SequenceClassifier& model, const HiddenBatch& batch, bool has_cls) {
  const Tensor table = model.embedding().tokens(), mask = tensor_named(model, "embedding.mask");
  Tensor sum = at::zeros({});
  int64_t m = 0;
  for (int64_t b = 0; b < kMixedRows; ++b) {
    std::vector<Tensor> x;
    std::vector<int64_t> positions, labels;
    if (has_cls) x.push_back(tensor_named(model, "embedding.cls"));
    for (int64_t i = 0; i < kMixedLengths[b]; ++i) {
      const bool is_hidden = m < batch.labels_M.size(0) &&
                             batch.input.places_M[m].item<int64_t>() == b * kMixedShape.length + i;
      x.push_back(is_hidden ? mask : table[batch.input.tokens_BL[b][i].item<int64_t>()]);
      if (!is_hidden) continue;
      positions.push_back(static_cast<int64_t>(x.size()) - 1);
      labels.push_back(batch.labels_M[m++].item<int64_t>());
    }
    const Tensor placed =
        at::stack(x) + layers::sinusoid_table(static_cast<int64_t>(x.size()), table.size(1));
    const Tensor y = model.encoder().forward(placed.unsqueeze(0), {}, {})[0];
    for (size_t k = 0; k < positions.size(); ++k) {
      const Tensor scores = at::mv(tensor_named(model, "token_head.weight"), y[positions[k]]) +
                            tensor_named(model, "token_head.bias");
      sum = sum + at::logsumexp(scores, 0) - scores[labels[k]];
    }
  }
  EXPECT_EQ(m, batch.labels_M.size(0));
  return sum / m;
}

TEST(HiddenPlaces, HaveTheLossAndGradientsOfEachRowAlone) {
  for (const char* pooling : {"mean", "cls"}) {
    for (const auto group_cost : {std::optional<int64_t>(1), std::optional<int64_t>()}) {
      SCOPED_TRACE(testing::Message() << pooling << (group_cost ? ", in groups" : ", in one"));
      const auto model =
          hidden_model(kMixedShape, Output::kHiddenTokens, pooling, group_cost, "transformer");
      const HiddenBatch batch = hidden_batch();
      const Tensor loss = model.loss(batch.input, batch.labels_M, {}).mean;
      const Tensor expected = oracle_loss(model, batch, pooling == std::string("cls"));
      EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-5);
      const Tensor found = all_gradients(model, loss);
      EXPECT_LE(ops::relative_error(found, all_gradients(model, expected)), 2e-5);
    }
  }
}

TEST(HiddenPlaces, AreNotSeen) {
  const auto model = hidden_model(kMixedShape, Output::kHiddenTokens, "mean", kGroupCost, "local");
  HiddenBatch batch = hidden_batch();
  const at::NoGradGuard no_grad;
  const Tensor before = model.forward(batch.input, {});
  batch.input.tokens_BL.view(-1).index_fill_(0, batch.input.places_M, 7);
  EXPECT_TRUE(at::equal(model.forward(batch.input, {}), before));
  batch.input.tokens_BL[1][0] = 1 + batch.input.tokens_BL[1][0].item<int32_t>() % 10;
  EXPECT_FALSE(at::equal(model.forward(batch.input, {}), before));
}

TEST(HiddenPlaces, OfPixelsAreGrayLevelsOrScoresOfThem) {
  const TaskShape shape{.length = 16,
                        .vocabulary = 256,
                        .num_classes = 2,
                        .has_padding = false,
                        .values = ValueInput{.zero = 100, .scale = 0.01}};
  const ModelInput input{.values_BLC = at::linspace(-1, 1, 32).view({2, 16, 1}),
                         .places_M = at::tensor({0, 5, 31}, at::kLong)};
  const at::NoGradGuard no_grad;
  const auto classes = hidden_model(shape, Output::kHiddenTokens, "mean", {}, "s4d");
  EXPECT_EQ(classes.forward(input, {}).sizes(), at::IntArrayRef({3, 256}));
  const auto levels = hidden_model(shape, Output::kHiddenValues, "mean", {}, "s4d");
  const Tensor predicted = levels.forward(input, {});
  ASSERT_EQ(predicted.sizes(), at::IntArrayRef({3, 1}));
  // A fresh head gives values around 0, a gray level of 100 here.
  EXPECT_LT((predicted - 100).abs().max().item<double>(), 1000);
  EXPECT_GT((predicted - 100).abs().min().item<double>(), 0);
}

TEST(HiddenPlaces, ShareAllButTheHeadWithAClassifier) {
  const auto names = [](Output output) {
    std::vector<std::string> all;
    for (const Parameter& p :
         hidden_model(kMixedShape, output, "cls", {}, "linformer").parameter_list()) {
      const bool apart = p.name.starts_with("head.") || p.name.starts_with("token_head.");
      if (!apart && p.name != "embedding.mask") all.push_back(p.name);
    }
    return all;
  };
  EXPECT_EQ(names(Output::kHiddenTokens), names(Output::kClasses));
}

TEST(Loss, OfValuesIsTheMeanError) {
  const Tensor scores = at::tensor({1.0F, 2.0F, 5.0F}).unsqueeze(1);
  const Tensor labels = at::tensor({1.25F, 4.0F, 4.0F});
  EXPECT_FLOAT_EQ(loss_of(scores, labels, at::Reduction::Mean).item<float>(), 3.25F / 3);
  EXPECT_FLOAT_EQ(loss_of(scores, labels, at::Reduction::Sum).item<float>(), 3.25F);
  EXPECT_TRUE(at::equal(are_right(scores, labels), at::tensor({1, 0, 0}).to(at::kBool)));
}

}  // namespace
}  // namespace lra::models
