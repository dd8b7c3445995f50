#include "training/loop/breakdown.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/scratch_folder.h"
#include "training/run/test_runs.h"

namespace lra::training {
namespace {

class ClassMetrics : public ::testing::Test {
 protected:
  Split split_of(const std::vector<int32_t>& labels) {
    std::vector<TestExample> examples;
    for (const int32_t label : labels) examples.push_back({label, {{1, 2}}});
    return write_split(scratch_.file("data" + std::to_string(num_splits_++)), examples);
  }
  // Two classes, by the probability of class 1.
  static EvaluationResult predicted(const std::vector<double>& scores) {
    EvaluationResult result;
    result.confusion = {{0, 0}, {0, 0}};
    for (const double p : scores) result.predictions.push_back({p > 0.5, p > 0.5 ? p : 1 - p});
    return result;
  }

  ScratchFolder scratch_;
  int num_splits_ = 0;
};

TEST_F(ClassMetrics, MacroF1IsThatOfScikitLearn) {
  EXPECT_NEAR(macro_f1({{8, 1}, {1, 1}}), (16.0 / 18 + 2.0 / 4) / 2, 1e-12);
  // f1_score([0, 0, 1, 1], [0, 2, 1, 1], average="macro"): class 2 was predicted and is 0; class 3
  // is neither label nor prediction.
  EXPECT_NEAR(macro_f1({{1, 0, 1, 0}, {0, 2, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}),
              (2.0 / 3 + 1 + 0) / 3, 1e-12);
  EXPECT_EQ(macro_f1({}), 0);
}

TEST_F(ClassMetrics, AreaUnderRocIsTheShareOfPairsInOrder) {
  const Split split = split_of({0, 0, 1, 1, 1});
  const auto area = area_under_roc(predicted({0.1, 0.4, 0.35, 0.8, 0.4}), split);
  EXPECT_NEAR(area.value(), (1 + 2 + 1.5) / 6, 1e-12);
  // Probabilities near 1 are told apart where float32 would round them to it.
  EXPECT_EQ(area_under_roc(predicted({1 - 1e-9, 1 - 1e-9, 1 - 1e-10, 1 - 1e-10, 1 - 1e-10}), split),
            1);
}

TEST_F(ClassMetrics, ThereIsNoAreaOfOneClassOrThreeOrOfNan) {
  EvaluationResult result = predicted({0.1, 0.9});
  EXPECT_FALSE(area_under_roc(result, split_of({1, 1})));
  const Split split = split_of({0, 1});
  EXPECT_TRUE(area_under_roc(result, split));
  result.summary.loss = NAN;
  EXPECT_FALSE(area_under_roc(result, split));
  result.summary.loss = 0;
  result.confusion.resize(3);
  EXPECT_FALSE(area_under_roc(result, split));
}

TEST_F(ClassMetrics, BalancedWeightsAverageToOneAndEqualizeTheClasses) {
  // compute_class_weight("balanced", classes=[0, 1], y=[0, 0, 0, 1]) is 2/3, 2; class 2 is missing.
  const at::Tensor weights = balanced_weights(split_of({0, 0, 0, 1}), 3);
  EXPECT_TRUE(at::allclose(weights, at::tensor({2.0f / 3, 2.0f, 1.0f})));
}

}  // namespace
}  // namespace lra::training
