#include "report/paper_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace lra::report {
namespace {

constexpr double kRounding = 0.005 + 1e-9;

TEST(PaperTables, AveragesFollowFromTheirRowsExceptSinkhorns) {
  for (const PaperModel& model : paper_models()) {
    const double v0 = paper_average(model, PaperVersion::kV0);
    const double v1 = paper_average(model, PaperVersion::kV1);
    if (model.name == "sinkhorn") {
      EXPECT_NEAR(v0, 51.48, kRounding);
      EXPECT_NEAR(v1, 51.58, kRounding);
      EXPECT_GT(std::abs(v0 - model.average_v0_printed), 0.05);
      EXPECT_GT(std::abs(v1 - model.average_v1_printed), 1.0);
    } else {
      EXPECT_NEAR(v0, model.average_v0_printed, kRounding) << model.name;
      EXPECT_NEAR(v1, model.average_v1_printed, kRounding) << model.name;
    }
  }
}

// The paper prints mean (sample standard deviation) of every column over its eleven models.
TEST(PaperTables, ColumnsHaveThePrintedMeansAndSpreads) {
  const double printed[][2] = {{29, 9.7}, {61, 4.6}, {55, 2.6}, {41, 1.8}, {72, 3.7}};
  for (size_t task = 0; task < kNumScoredTasks; ++task) {
    double sum = 0, squares = 0;
    for (const PaperModel& model : paper_models()) sum += model.v0[task];
    const double mean = sum / 11;
    for (const PaperModel& model : paper_models()) squares += std::pow(model.v0[task] - mean, 2);
    EXPECT_EQ(std::round(mean), printed[task][0]);
    EXPECT_NEAR(std::sqrt(squares / 10), printed[task][1], 0.05);
  }
}

TEST(PaperTables, OnlyListopsMovedBetweenTheVersions) {
  for (const PaperModel& model : paper_models()) {
    EXPECT_EQ(paper_accuracy(model, PaperTask::kText, PaperVersion::kV0),
              paper_accuracy(model, PaperTask::kText, PaperVersion::kV1));
    EXPECT_NE(paper_accuracy(model, PaperTask::kListops, PaperVersion::kV0),
              paper_accuracy(model, PaperTask::kListops, PaperVersion::kV1));
  }
}

TEST(PaperTables, PathXHasNoFigure) {
  EXPECT_EQ(paper_accuracy(*paper_model("performer"), PaperTask::kPathX, PaperVersion::kV1),
            std::nullopt);
}

TEST(PaperTables, ChanceAverageIsNotTheMeanOfItsRow) {
  double sum = 0;
  for (int task = 0; task < kNumScoredTasks; ++task) sum += kPaperChance[task];
  EXPECT_DOUBLE_EQ(sum / kNumScoredTasks, 34.0);
  EXPECT_NE(sum / kNumScoredTasks, kPaperChanceAveragePrinted);
}

// Printed ratios against those of the steps per second, to the printed number of decimals.
template <typename Row>
std::vector<std::string> wrong_ratios(std::span<const Row> rows, double decimals) {
  std::vector<std::string> wrong;
  for (const Row& row : rows) {
    for (size_t i = 0; i < 4; ++i) {
      const double ratio = row.steps_per_s[i] / rows.front().steps_per_s[i];
      if (std::abs(ratio - row.ratio_printed[i]) > 0.5 * decimals + 1e-9) {
        wrong.push_back(std::string(row.name) + " " + std::to_string(i + 1) + "K");
      }
    }
  }
  std::sort(wrong.begin(), wrong.end());
  return wrong;
}

TEST(PaperTables, TrainingRatiosFollowFromTheSpeedsExceptLinformersFirst) {
  // Reformer at 2K: 2.2 / 4.9 = 0.449, printed 0.4, which rounds right.
  EXPECT_EQ(wrong_ratios(paper_training(), 0.1), std::vector<std::string>{"linformer 1K"});
}

TEST(PaperTables, InferenceRatiosHaveSixSlips) {
  const std::vector<std::string> expected = {"local 1K",     "local 2K",    "local 4K",
                                             "performer 4K", "sinkhorn 3K", "synthesizer 2K"};
  EXPECT_EQ(wrong_ratios(paper_inference(), 0.01), expected);
}

TEST(PaperTables, EveryTableNamesKnownModelsOnce) {
  std::map<std::string_view, int> seen;
  for (const auto& row : paper_generalization()) ++seen[row.name];
  for (const auto& row : paper_convergence()) ++seen[row.name];
  EXPECT_EQ(seen.size(), 11u);
  for (const auto& [name, count] : seen) {
    EXPECT_EQ(count, 2) << name;
    EXPECT_NE(paper_model(name), nullptr) << name;
  }
  for (const auto& row : paper_training()) EXPECT_NE(paper_model(row.name), nullptr);
  EXPECT_EQ(paper_training().size(), 9u);
  EXPECT_EQ(paper_inference().size(), 9u);
}

TEST(PaperTables, LinformerOverfitsImageMost) {
  double linformer = 0;
  std::vector<double> gaps;
  for (const auto& row : paper_generalization()) {
    const auto image =
        *paper_accuracy(*paper_model(row.name), PaperTask::kImage, PaperVersion::kV0);
    gaps.push_back(row.train_accuracy - image);
    if (row.name == "linformer") linformer = gaps.back();
  }
  EXPECT_NEAR(linformer, 58.67, 1e-9);
  EXPECT_EQ(*std::max_element(gaps.begin(), gaps.end()), linformer);
  EXPECT_NEAR(*std::min_element(gaps.begin(), gaps.end()), 21.73, 1e-9);
}

TEST(PaperTables, NinePaperStepCountsAreOffTheEvaluationGrid) {
  int off = 0;
  for (const auto& row : paper_convergence()) {
    off += (row.steps_to_30 % 175 != 0) + (row.steps_to_35 % 175 != 0);
    EXPECT_LT(row.steps_to_30, row.steps_to_35);
  }
  EXPECT_EQ(off, 9);
}

TEST(PaperTables, NamesOfOurRecordsAreFound) {
  EXPECT_EQ(paper_task("pathfinder128"), PaperTask::kPathX);
  EXPECT_EQ(paper_task("pathfinder32"), PaperTask::kPathfinder);
  EXPECT_EQ(paper_task("pathfinder64"), std::nullopt);
  EXPECT_EQ(paper_model("linear"), paper_model("linear_transformer"));
  EXPECT_EQ(paper_model("s4d"), nullptr);
}

TEST(PaperTables, RelativeSpeedIsComputed) {
  EXPECT_NEAR(*paper_relative_speed("performer", "train", 4096), 8.0 / 1.4, 1e-12);
  EXPECT_NEAR(*paper_relative_speed("local", "infer", 1024), 108.0 / 114, 1e-12);
  EXPECT_EQ(paper_relative_speed("longformer", "train", 1024), std::nullopt);
  EXPECT_EQ(paper_relative_speed("performer", "train", 512), std::nullopt);
}

}  // namespace
}  // namespace lra::report
