#include "analysis/attention_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/softmax_rows.h"
#include "base/scratch_folder.h"
#include "mixers/all.h"
#include "training/run/make_model.h"
#include "training/run/test_runs.h"

namespace lra::analysis {
namespace {

using training::OneThread;
using training::RunConfig;
using training::tiny_run;

constexpr int64_t kLength = 37;

// Settings under which 37 tokens meet every part of a mechanism.
std::vector<std::string> settings_of(const std::string& model) {
  std::vector<std::string> sets = {"model.layers=2", "model.pooling=cls"};
  if (model == "bigbird") sets.push_back("mixer.block=3");
  if (model == "local" || model == "sinkhorn") sets.push_back("mixer.block=8");
  if (model == "longformer") sets.push_back("mixer.window=6");
  if (model == "reformer") sets.push_back("mixer.chunk=4");
  if (model == "sparse_transformer") sets.push_back("mixer.summary=2");
  if (model == "performer") sets.push_back("mixer.num_features=20");
  return sets;
}

struct Case {
  Case(const std::string& name, const std::vector<std::string>& more = {})
      : run(tiny_run(with(settings_of(name), more), name)),
        model(training::make_model(run, run.make_task()->shape())),
        attention(model, run.model_config, run.mixer_spec(), name),
        tokens(at::arange(kLength, at::kInt).remainder(15).add(1).to(at::kInt).unsqueeze(0)),
        inputs(attention.mixer_inputs(tokens)) {}

  static std::vector<std::string> with(std::vector<std::string> sets,
                                       const std::vector<std::string>& more) {
    sets.insert(sets.end(), more.begin(), more.end());
    return sets;
  }

  // All weights of a layer; each pair must come once.
  at::Tensor dense(int64_t layer) const {
    const int64_t size = inputs[0].size(1);
    at::Tensor all = at::zeros({attention.num_heads(), size, size});
    at::Tensor seen = at::zeros_like(all);
    attention.for_each_tile(layer, inputs[static_cast<size_t>(layer)], [&](const WeightTile& tile) {
      const auto place = [&](at::Tensor t) {
        return t.narrow(1, tile.first_query, tile.weights_HQK.size(1))
            .narrow(2, tile.first_key, tile.weights_HQK.size(2));
      };
      place(all).copy_(tile.weights_HQK);
      place(seen).add_(1);
    });
    EXPECT_TRUE(at::equal(seen, at::ones_like(seen)));
    return all;
  }

  mixers::SequenceLayer& mixer(int64_t layer) const {
    return model.encoder().blocks()[static_cast<size_t>(layer)]->mixer();
  }
  at::Tensor weight(int64_t layer, const std::string& name) const {
    return mixer(layer).named_parameters()[name].detach();
  }

  RunConfig run;
  models::SequenceClassifier model;
  AttentionWeights attention;
  at::Tensor tokens;
  std::vector<at::Tensor> inputs;
};

// [heads, S, E] of the last part of a projection.
at::Tensor values_of(const Case& c, const std::string& name) {
  const int64_t heads = c.attention.num_heads();
  const at::Tensor weight = c.weight(1, name);
  const int64_t width = c.run.model_config.qkv_dim;
  const at::Tensor rows = weight.narrow(0, weight.size(0) - width, width);
  return at::matmul(c.inputs[1][0], rows.t()).unflatten(1, {heads, -1}).transpose(0, 1);
}

// Weights times values are the mixer's own output, in every model whose values are those of one
// projection: Longformer's global token has another (tests/parity/analyses_from_python.py).
TEST(AttentionWeights, TimesValuesAreTheOutputOfEveryMixer) {
  const OneThread one_thread;
  const at::NoGradGuard no_grad;
  for (const std::string& name : mixers::mixer_names()) {
    if (!mixers::find_mixer(name).facts.attention_weights) continue;
    std::vector<std::string> more;
    if (name == "longformer") more = {"mixer.global_tokens=0"};
    const Case c(name, more);
    const std::string projection = name == "reformer"      ? "query_value.weight"
                                   : name == "synthesizer" ? "value.weight"
                                                           : "qkv.weight";
    const at::Tensor mixed_SHE = at::matmul(c.dense(1), values_of(c, projection)).transpose(0, 1);
    const at::Tensor mine = at::matmul(mixed_SHE.flatten(1), c.weight(1, "output.weight").t());
    const at::Tensor its = c.mixer(1).forward(c.inputs[1], {})[0];
    EXPECT_LT((mine - its).abs().max().item<double>(), 1e-4) << name;
  }
}

TEST(AttentionWeights, OfEveryModelSumToTheirRowSums) {
  const OneThread one_thread;
  for (const std::string& name : mixers::mixer_names()) {
    if (!mixers::find_mixer(name).facts.attention_weights) continue;
    const Case c(name);
    const at::Tensor sums = c.dense(0).sum(2);
    EXPECT_LT((sums - c.attention.row_sums(0, c.inputs[0])).abs().max().item<double>(), 1e-4)
        << name;
    // The blocks that Sinkhorn mixes are weighted by no exact permutation.
    if (name == "sinkhorn") continue;
    EXPECT_LT((sums - 1).abs().max().item<double>(), 1e-4) << name;
  }
}

TEST(AttentionWeights, OfTheTransformerAreItsSoftmax) {
  const OneThread one_thread;
  const Case c("transformer");
  const at::Tensor qkv = at::matmul(c.inputs[0][0], c.weight(0, "qkv.weight").t())
                             .to(at::kDouble)
                             .unflatten(1, {3, 2, 8})
                             .permute({1, 2, 0, 3});
  const at::Tensor dense =
      at::softmax(at::matmul(qkv[0], qkv[1].transpose(1, 2)) / std::sqrt(8.0), 2);
  EXPECT_LT((dense - c.dense(0)).abs().max().item<double>(), 1e-5);
}

// Rows computed from queries and keys, and columns read off: the strided groups of Local attention
// call the operator as the transformer does, on rows in another order, when one group holds all.
TEST(AttentionWeights, OfPermutedRowsAreReadOff) {
  const OneThread one_thread;
  const at::NoGradGuard no_grad;
  const Case c("local", {"mixer.groups=strided", "mixer.block=7"});
  const at::Tensor dense = c.dense(0);
  EXPECT_LT((dense.sum(2) - 1).abs().max().item<double>(), 1e-4);
  const int64_t groups = (41 + 6) / 7;
  for (int64_t i = 0; i <= kLength; ++i) {
    for (int64_t j = 0; j <= kLength; ++j) {
      if (i % groups != j % groups) {
        ASSERT_EQ(dense[0][i][j].item<float>(), 0) << i << " " << j;
      }
    }
  }
}

TEST(SoftmaxRows, AgreeWithNoOtherColumns) {
  const OneThread one_thread;
  const at::NoGradGuard no_grad;
  const Case c("transformer");
  const auto rows = SoftmaxRows::heard_in([&] { (void)c.mixer(0).forward(c.inputs[0], {}); });
  ASSERT_TRUE(rows.has_value());
  at::Tensor columns = c.dense(0).narrow(2, 5, 8).contiguous();
  EXPECT_TRUE(rows->agree_with(columns, 5, 1e-4));
  EXPECT_FALSE(rows->agree_with(columns, 6, 1e-4));
  columns[1][36][7] += 0.01;
  EXPECT_FALSE(rows->agree_with(columns, 5, 1e-4));
  columns[1][36][7] = NAN;
  EXPECT_FALSE(rows->agree_with(columns, 5, 1e-4));
}

TEST(SoftmaxRows, AreHeardOfUnrestrictedAttentionAlone) {
  const OneThread one_thread;
  const at::NoGradGuard no_grad;
  for (const char* name : {"bigbird", "reformer", "longformer", "sinkhorn", "linear_transformer",
                           "sparse_transformer", "performer"}) {
    const Case c(name);
    EXPECT_FALSE(SoftmaxRows::heard_in([&] { (void)c.mixer(0).forward(c.inputs[0], {}); })) << name;
  }
}

// The weights that are replaced while columns are read off are put back.
TEST(AttentionWeights, LeaveTheModelAsItWas) {
  const OneThread one_thread;
  const at::NoGradGuard no_grad;
  for (const std::string& name : mixers::mixer_names()) {
    if (!mixers::find_mixer(name).facts.attention_weights) continue;
    const Case c(name);
    const at::Tensor before = c.model.forward({c.tokens, {}}, {});
    (void)c.attention.row_sums(1, c.inputs[1]);
    EXPECT_TRUE(at::equal(c.model.forward({c.tokens, {}}, {}), before)) << name;
  }
}

TEST(AttentionWeights, RefuseAModelThatHasNone) {
  EXPECT_THAT(error_of([] { const Case c("linformer"); }),
              testing::HasSubstr("linformer: Linformer has no attention weights between tokens"));
}

TEST(AttentionWeights, RefuseNumbersThatAreNotFinite) {
  const OneThread one_thread;
  const at::NoGradGuard no_grad;
  const Case c("transformer");
  c.weight(0, "qkv.weight").fill_(NAN);
  EXPECT_THAT(
      error_of([&] { c.attention.for_each_tile(0, c.inputs[0], [](const WeightTile&) {}); }),
      testing::HasSubstr("layer 0 has attention weights that are not finite"));
}

}  // namespace
}  // namespace lra::analysis
