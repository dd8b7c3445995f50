#include "analysis/embeddings.h"

#include <gtest/gtest.h>

#include "training/run/make_model.h"
#include "training/run/test_runs.h"

namespace lra::analysis {
namespace {

using training::OneThread;

TEST(Embeddings, CosinesKnowAngles) {
  const at::Tensor rows =
      at::tensor({1.0f, 0.0f, 3.0f, 3.0f, -2.0f, 0.0f, 0.0f, 0.0f}).view({4, 2});
  const at::Tensor cosines = cosine_similarity(rows);
  const auto c = cosines.accessor<float, 2>();
  EXPECT_FLOAT_EQ(c[0][0], 1);
  EXPECT_NEAR(c[0][1], std::sqrt(0.5), 1e-6);
  EXPECT_FLOAT_EQ(c[0][2], -1);
  EXPECT_FLOAT_EQ(c[3][3], 0);
}

// A grid whose similarity depends only on the distance in rows.
TEST(Embeddings, TellVerticalFromHorizontal) {
  constexpr int64_t kSide = 10;
  const at::Tensor place = at::arange(kSide * kSide);
  const at::Tensor row = place.div(kSide, "floor");
  const at::Tensor apart = (row.unsqueeze(0) - row.unsqueeze(1)).abs();
  const at::Tensor similarity = 1 - 0.1 * apart;
  const ShownPositions shown = shown_positions(kSide * kSide, kSide);
  const EmbeddingsResult result = embedding_figures(at::eye(4), similarity, shown, true);
  ASSERT_EQ(result.vertical.size(), 8u);
  ASSERT_EQ(result.horizontal.size(), 8u);
  for (size_t n = 0; n < 8; ++n) {
    EXPECT_NEAR(result.vertical[n], 1 - 0.1 * static_cast<double>(n + 1), 1e-6);
    EXPECT_NEAR(result.horizontal[n], 1, 1e-6);
  }
  // 9 of the 99 neighbors in reading order stand in different rows.
  EXPECT_NEAR(result.by_distance[0], 1 - 0.1 * 9 / 99, 1e-6);
  EXPECT_NEAR(result.position_min, 0.1, 1e-6);
}

TEST(Embeddings, CorrelateGraysWithTheirDifference) {
  const at::Tensor gray = at::arange(6);
  const at::Tensor apart = (gray.unsqueeze(0) - gray.unsqueeze(1)).abs().to(at::kFloat);
  const ShownPositions shown = shown_positions(4, 2);
  const auto falling = embedding_figures(1 - 0.2 * apart, at::eye(4), shown, true);
  EXPECT_NEAR(*falling.intensity_correlation, -1, 1e-6);
  EXPECT_NEAR(falling.by_intensity.at(2), 0.4, 1e-6);
  EXPECT_EQ(falling.by_intensity.size(), 5u);
  // Nothing varies, so nothing correlates.
  const auto flat = embedding_figures(at::eye(6), at::eye(4), shown, true);
  EXPECT_FALSE(flat.intensity_correlation.has_value());
  const auto text = embedding_figures(1 - 0.2 * apart, at::eye(4), shown_positions(4, 0), false);
  EXPECT_TRUE(text.by_intensity.empty());
  EXPECT_FALSE(text.intensity_correlation.has_value());
}

TEST(Embeddings, ShowPartOfManyPositions) {
  EXPECT_EQ(shown_positions(4096, 0).stride, 1);
  const ShownPositions line = shown_positions(4097, 0);
  EXPECT_EQ(line.stride, 2);
  EXPECT_EQ(line.indices.size(0), 2049);
  const ShownPositions grid = shown_positions(128 * 128, 128);
  EXPECT_EQ(grid.stride, 2);
  EXPECT_EQ(grid.side, 64);
  EXPECT_EQ(grid.indices[65].item<int64_t>(), 2 * 128 + 2);
}

TEST(Embeddings, PicturesOfPositionsStaySmall) {
  const ShownPositions line = shown_positions(1000, 0), grid = shown_positions(1024, 32);
  EXPECT_EQ(position_picture(at::eye(1000), line).width, 250);
  EXPECT_EQ(position_picture(at::eye(1024), grid).width, 8 * 33 + 1);
  EXPECT_EQ(position_picture(at::eye(9), shown_positions(9, 3)).width, 3 * 4 + 1);
  // Equal positions are red in the first tile of the first line, its first pixel.
  const auto image = position_picture(at::eye(1024), grid);
  EXPECT_GT(image.pixels[3 * (265 + 1)], image.pixels[3 * (265 + 1) + 2]);
  EXPECT_EQ(image.pixels[3 * (265 + 2)], image.pixels[3 * (265 + 3)]);
}

TEST(Embeddings, OfAModelLeaveThePositionOfClsOut) {
  const OneThread one_thread;
  for (const char* positions : {"sinusoid", "learned"}) {
    const auto run = training::tiny_run({std::string("model.positions=") + positions});
    const models::SequenceClassifier model = training::make_model(run, run.make_task()->shape());
    const Embeddings with = embeddings_of(model, true), without = embeddings_of(model, false);
    EXPECT_EQ(with.position_PD.size(0) + 1, without.position_PD.size(0));
    EXPECT_TRUE(at::equal(with.position_PD[0], without.position_PD[1]));
    EXPECT_EQ(with.token_VD.size(0), run.make_task()->shape().vocabulary);
  }
}

}  // namespace
}  // namespace lra::analysis
