#include "analysis/convergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/generalization.h"
#include "base/scratch_folder.h"

namespace lra::analysis {
namespace {

RunRecord run_with_curve() {
  RunRecord run;
  run.steps = 800;
  run.train_seconds = 80;
  run.val_curve = {
      {175, 2.0, 0.25, 10}, {350, 1.9, 0.30, 10}, {525, 1.9, 0.29, 10}, {700, 1.8, 0.36, 10}};
  return run;
}

TEST(Convergence, IsTheFirstEvaluationAtOrAboveTheThreshold) {
  const ConvergenceResult c = measure_convergence(run_with_curve(), 175, {0.30, 0.35, 0.4, 0.1});
  EXPECT_EQ(c.eval_every, 175);
  ASSERT_EQ(c.thresholds.size(), 4u);
  EXPECT_EQ(c.thresholds[0].step, 350);
  EXPECT_DOUBLE_EQ(*c.thresholds[0].seconds, 35);
  EXPECT_EQ(c.thresholds[1].step, 700);
  EXPECT_FALSE(c.thresholds[2].step.has_value());
  EXPECT_FALSE(c.thresholds[2].seconds.has_value());
  EXPECT_EQ(c.thresholds[3].step, 175);
  EXPECT_EQ(c.best->step, 700);
  EXPECT_EQ(c.last_step, 700);
}

TEST(Convergence, HasNoTimesOfARunWithoutThem) {
  RunRecord run = run_with_curve();
  run.train_seconds = 0;
  const ConvergenceResult c = measure_convergence(run, 175, {0.3});
  EXPECT_EQ(c.thresholds[0].step, 350);
  EXPECT_FALSE(c.thresholds[0].seconds.has_value());
}

TEST(Convergence, ReadsThresholdsAsSharesOrPercentages) {
  EXPECT_EQ(parse_thresholds("0.3,35%,100%,1"), (std::vector<double>{0.3, 0.35, 1, 1}));
  for (const char* wrong : {"", "0", "1.1", "101%", "-5%", "nan", "x", "0.3,", "0.3;0.4", "30"}) {
    EXPECT_THAT(error_of([&] { parse_thresholds(wrong); }), testing::HasSubstr("--thresholds"))
        << wrong;
  }
}

TEST(Generalization, HasTheGapAndItsStandardError) {
  const Evaluation train{5, 0.1, 0.9, 400}, test{5, 0.5, 0.5, 100};
  const GeneralizationResult g = generalization_of(train, test);
  EXPECT_DOUBLE_EQ(g.gap, 0.4);
  EXPECT_DOUBLE_EQ(g.gap_error, std::sqrt(0.9 * 0.1 / 400 + 0.25 / 100));
}

}  // namespace
}  // namespace lra::analysis
