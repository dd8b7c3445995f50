#include "analysis/rollout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "analysis/heat_map.h"
#include "training/run/make_model.h"
#include "training/run/test_runs.h"

namespace lra::analysis {
namespace {

using training::OneThread;
using training::tiny_run;

constexpr int64_t kRolloutLength = 30;

// The product of whole matrices, as the paper writes it.
at::Tensor dense_rollout(const AttentionWeights& attention, const at::Tensor& tokens,
                         const std::string& pooling) {
  const auto inputs = attention.mixer_inputs(tokens);
  const int64_t size = inputs[0].size(1);
  at::Tensor product = at::eye(size, at::kDouble);
  for (int64_t layer = 0; layer < attention.num_layers(); ++layer) {
    at::Tensor mixed = at::eye(size, at::kDouble);
    attention.for_each_tile(layer, inputs[static_cast<size_t>(layer)], [&](const WeightTile& tile) {
      mixed.narrow(0, tile.first_query, tile.weights_HQK.size(1))
          .narrow(1, tile.first_key, tile.weights_HQK.size(2)) +=
          tile.weights_HQK.to(at::kDouble).mean(0);
    });
    product = at::matmul(mixed / mixed.sum(1, true), product);
  }
  return pooling == "mean" ? product.mean(0) : product[0];
}

TEST(Rollout, IsTheRowOfTheProductOfAllLayers) {
  const OneThread one_thread;
  for (const char* model : {"transformer", "bigbird", "reformer", "sinkhorn", "longformer"}) {
    for (const char* pooling : {"cls", "mean", "first"}) {
      std::vector<std::string> sets = {"model.layers=3", std::string("model.pooling=") + pooling};
      if (std::string(model) == "sinkhorn") sets.push_back("mixer.block=8");
      if (std::string(model) == "bigbird") sets.push_back("mixer.block=3");
      const auto run = tiny_run(sets, model);
      const models::SequenceClassifier classifier =
          training::make_model(run, run.make_task()->shape());
      const AttentionWeights attention(classifier, run.model_config, run.mixer_spec(), model);
      const at::Tensor tokens =
          at::arange(kRolloutLength, at::kInt).remainder(15).add(1).to(at::kInt).unsqueeze(0);
      const at::Tensor row = rollout(attention, tokens, pooling);
      EXPECT_NEAR(row.sum().item<double>(), 1, 1e-12);
      EXPECT_LT((row - dense_rollout(attention, tokens, pooling)).abs().max().item<double>(), 1e-6)
          << model << " " << pooling;
    }
  }
}

TEST(Rollout, FiguresAreThoseOfTheTokens) {
  // CLS keeps half; of the rest the four tokens have 1/8, 1/2, 1/8, 1/4.
  const at::Tensor row = at::tensor({0.5, 0.0625, 0.25, 0.0625, 0.125}, at::kDouble);
  const std::vector<uint8_t> pixels = {0, 200, 0, 100};
  const RolloutExample e = rollout_figures(row, true, pixels, 3);
  EXPECT_DOUBLE_EQ(*e.cls_weight, 0.5);
  EXPECT_DOUBLE_EQ(*e.bright_weight, 0.75);
  EXPECT_DOUBLE_EQ(*e.bright_pixels, 0.5);
  EXPECT_NEAR(e.entropy, 1.75 / 2, 1e-12);  // in bits, of log2(4)
  ASSERT_EQ(e.top.size(), 3u);
  EXPECT_EQ(e.top[0].position, 1);
  EXPECT_DOUBLE_EQ(e.top[0].weight, 0.5);
  EXPECT_EQ(e.top[1].position, 3);
  EXPECT_EQ(e.top[2].position, 0);  // before 2, which is as large
  const RolloutExample text = rollout_figures(row.slice(0, 1), false, {}, 9);
  EXPECT_FALSE(text.cls_weight || text.bright_weight || text.bright_pixels);
  EXPECT_EQ(text.top.size(), 4u);
}

TEST(Rollout, PictureShowsTheImageBesideTheWeights) {
  const at::Tensor row = at::tensor({0.5, 0.0, 0.5, 0.0, 0.0}, at::kDouble);
  const std::vector<uint8_t> pixels = {0, 255, 0, 0};
  const ColourImage picture = rollout_picture(row, true, pixels, 2);
  EXPECT_EQ(picture.height, 256);
  EXPECT_EQ(picture.width, 2 * 256 + 16);
  const auto at = [&](int x, int y) {
    const auto* p = &picture.pixels[static_cast<size_t>(3 * (y * picture.width + x))];
    return std::array<uint8_t, 3>{p[0], p[1], p[2]};
  };
  EXPECT_EQ(at(10, 10), (std::array<uint8_t, 3>{0, 0, 0}));
  EXPECT_EQ(at(200, 10), (std::array<uint8_t, 3>{255, 255, 255}));
  EXPECT_EQ(at(256 + 16 + 200, 10), colour_at(ColourScale::kSequential, 1));
  EXPECT_EQ(at(256 + 16 + 10, 200), colour_at(ColourScale::kSequential, 0));
  // Text: lines of 128 cells.
  const ColourImage strip = rollout_picture(at::ones({300}, at::kDouble), false, {}, 0);
  EXPECT_EQ(strip.width, 128 * 8);
  EXPECT_EQ(strip.height, 3 * 8);
}

}  // namespace
}  // namespace lra::analysis
