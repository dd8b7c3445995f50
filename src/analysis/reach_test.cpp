#include "analysis/reach.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/test_tensors.h"
#include "training/run/make_model.h"
#include "training/run/test_runs.h"

namespace lra::analysis {
namespace {

using at::Tensor;
using training::OneThread;
using training::tiny_run;

struct ReachCase {
  ReachCase(const std::string& name, const std::vector<std::string>& sets)
      : run(tiny_run(sets, name)), model(training::make_model(run, run.make_task()->shape())) {}
  // Tokens of rows of these lengths, padded to the longest.
  models::ModelInput input(const std::vector<int32_t>& lengths) const {
    const int64_t rows = static_cast<int64_t>(lengths.size());
    Tensor tokens = at::zeros({rows, *std::ranges::max_element(lengths)}, at::kInt);
    for (int64_t b = 0; b < rows; ++b) {
      for (int64_t i = 0; i < lengths[static_cast<size_t>(b)]; ++i) tokens[b][i] = 1 + i * 7 % 13;
    }
    return {.tokens_BL = tokens, .lengths_B = at::tensor(lengths, at::kInt)};
  }
  std::vector<ReachFigures> of(const std::vector<int32_t>& lengths) const {
    ReachSums sums(model, run.model_config, "a run");
    int64_t example = 0;
    for (const int32_t length : lengths) sums.add(input({length}), example++);
    return sums.figures();
  }
  training::RunConfig run;
  models::SequenceClassifier model;
};

TEST(Reach, OfLocalAttentionEndsWithItsBlock) {
  const OneThread one_thread;
  const ReachCase c("local", {"model.layers=2", "model.pooling=mean", "mixer.block=4"});
  const auto figures = c.of({40, 33});
  ASSERT_EQ(figures.size(), 3u);
  for (const ReachFigures& layer : figures) {
    EXPECT_NEAR(std::accumulate(layer.shares.begin(), layer.shares.end(), 0.0), 1, 1e-9);
    EXPECT_LE(layer.distance, 3) << layer.layer;
    EXPECT_GT(layer.equal, 12) << layer.layer;
    ASSERT_EQ(layer.shares.size(), 7u) << "0, 1, 2 to 3, .. 32 to 39";
    for (size_t octave = 3; octave < 7; ++octave) EXPECT_EQ(layer.shares[octave], 0);
  }
  EXPECT_EQ(figures[0].layer, "layer 0");
  EXPECT_EQ(figures[2].layer, "all layers");
}

// Only CLS is read: the last layer and all of them are asked at place 0.
TEST(Reach, WithClsCountsDistancesFromTheFront) {
  const OneThread one_thread;
  const ReachCase c("transformer", {"model.layers=2", "model.pooling=cls"});
  const auto figures = c.of({39});
  EXPECT_EQ(figures[1].equal, 35) << "36 of 40 places";
  EXPECT_EQ(figures[2].equal, 35);
  EXPECT_LT(figures[0].equal, 35) << "places all over the sequence";
}

TEST(Reach, OfAConvolutionIsItsWidth) {
  const OneThread one_thread;
  const ReachCase c("long_conv", {"model.layers=1", "model.pooling=mean", "mixer.width=8"});
  EXPECT_LE(c.of({40})[0].distance, 4);
}

TEST(Reach, RefusesAModelThatSeesBlocks) {
  const ReachCase c("local", {"model.receptive_field=8"});
  EXPECT_THROW(ReachSums(c.model, c.run.model_config, "a run"), Error);
}

// A layer in windows is the layer on each window alone, with CLS in front of each.
TEST(Reach, AWindowIsASequenceOfItsOwn) {
  const OneThread one_thread;
  const at::NoGradGuard no_grad;
  const ReachCase c("transformer", {"model.layers=1"});
  const SequenceLayerPtr layer = c.model.encoder().blocks()[0]->exchange_mixer(nullptr);
  const Tensor x = ops::random_tensor({2, 23, c.run.model_config.embed_dim}, 3, at::kFloat);
  const Tensor lengths = at::tensor({23, 10}, at::kInt);
  const layers::Context context{.mask_BL = models::mask_of_lengths(lengths, 23, at::kCPU),
                                .lengths_B = lengths};
  for (const int64_t cls : {0, 1}) {
    const Tensor y = in_windows(layer, 8, cls == 1)->forward(x, context);
    ASSERT_EQ(y.sizes(), x.sizes());
    for (int64_t row = 0; row < 2; ++row) {
      const int64_t valid = lengths[row].item<int64_t>();
      Tensor mean = at::zeros({x.size(2)});
      for (int64_t first = cls; first < valid; first += 8) {
        const int64_t count = std::min<int64_t>(8, valid - first);
        const Tensor window = at::cat({x[row].narrow(0, 0, cls), x[row].narrow(0, first, count)});
        const Tensor alone = layer->forward(window.unsqueeze(0), {})[0];
        EXPECT_TRUE(
            at::allclose(y[row].narrow(0, first, count), alone.narrow(0, cls, count), 1e-5, 1e-6));
        if (cls == 1) mean += alone[0] * (double(count) / double(valid - 1));
      }
      EXPECT_TRUE(cls == 0 || at::allclose(y[row][0], mean, 1e-5, 1e-6));
    }
  }
}

TEST(Reach, AllLayersInWindowsAreABoundedReceptiveField) {
  const OneThread one_thread;
  const at::NoGradGuard no_grad;
  for (const char* mixer : {"transformer", "s4d", "mamba2"}) {
    std::vector<std::string> sets = {"model.layers=2", "model.pooling=mean"};
    const ReachCase c(mixer, sets);
    sets.emplace_back("model.receptive_field=8");
    const ReachCase bounded(mixer, sets);
    const auto input = c.input({40, 21, 3});
    const Tensor whole = c.model.forward(input, {});
    {
      const ReplacedLayers guard(c.model, [](SequenceLayerPtr layer, size_t) {
        return in_windows(std::move(layer), 8, false);
      });
      const Tensor cut = c.model.forward(input, {});
      EXPECT_TRUE(at::allclose(cut, bounded.model.forward(input, {}), 1e-4, 1e-5)) << mixer;
      EXPECT_FALSE(at::allclose(cut, whole, 1e-4, 1e-5)) << mixer;
    }
    EXPECT_TRUE(at::equal(c.model.forward(input, {}), whole)) << "the layers are back";
  }
}

TEST(Reach, TheSmallestWindowIsTheLastOfThoseThatSuffice) {
  const auto score = [](double accuracy) { return Evaluation{1, 1, accuracy, 100}; };
  std::vector<ChangedInput> scores = {{"none", "", score(0.8), ""}};
  for (const auto& [tokens, accuracy] :
       std::map<std::string, double>{{"4", 0.795}, {"16", 0.7}, {"64", 0.79}, {"256", 0.81}}) {
    scores.push_back({window_change("layer 0"), tokens, score(accuracy), ""});
  }
  scores.push_back({window_change("all layers"), "4", {}, "bound"});
  std::vector<ReachFigures> layers(2);
  layers[0].layer = "layer 0";
  layers[1].layer = "all layers";
  set_windows(scores, layers);
  EXPECT_EQ(layers[0].window, 64) << "4 is enough by chance: 16 is not";
  EXPECT_FALSE(layers[1].window.has_value());
}

TEST(Reach, SaysWhatIsBoundToALength) {
  const auto bound = [](const std::string& name) {
    const ReachCase c(name, {});
    return bound_by(c.run, c.model, 8);
  };
  EXPECT_EQ(bound("linformer"), "projection");
  EXPECT_NE(bound("chordmixer").find("ChordMixer"), std::string::npos);
  EXPECT_EQ(bound("transformer"), "");
  EXPECT_EQ(bound("s4d"), "");
}

}  // namespace
}  // namespace lra::analysis
