#include "records/check_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/test_records.h"

namespace lra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Validations of honest_run(): 50 % at step 2500, 62.5 % at 5000; its test: 65 % of 2,000.
AnalysisRecord analysis_of(const std::string& kind) {
  AnalysisRecord analysis;
  static_cast<RunIdentity&>(analysis) = honest_run();
  analysis.kind = kind;
  analysis.step = 5000;
  return analysis;
}

TEST(CheckAnalysis, AGapIsADifferenceOfSharesAndTheTestThatOfTheRun) {
  AnalysisRecord analysis = analysis_of("generalization");
  analysis.generalization = GeneralizationResult{
      .train = {5000, 0.5, 0.75, 8000}, .test = {5000, 1.5, 0.65, 2000}, .gap = 0.75 - 0.65};
  EXPECT_THAT(check_analysis(analysis, honest_run()), IsEmpty());
  analysis.generalization->gap = 0.01;
  EXPECT_THAT(check_analysis(analysis, honest_run()),
              ElementsAre("its gap is 0.01000000; the accuracies give 0.10000000"));
  analysis.generalization->test.accuracy = 0.74;
  EXPECT_THAT(check_analysis(analysis, honest_run()),
              ElementsAre(HasSubstr("its accuracy on test is 74.00%; that of the same weights in "
                                    "the run's record 65.00%")));
  analysis.generalization->test = {5000, 1.5, 0.7401, 100};
  analysis.generalization->gap = 0.75 - 0.7401;
  EXPECT_THAT(check_analysis(analysis, honest_run()),
              ElementsAre(HasSubstr("0.74010000 is no whole number of 100 examples")))
      << "on other examples it may be another";
}

TEST(CheckAnalysis, ARunMayHaveBeenTrainedFurther) {
  AnalysisRecord analysis = analysis_of("span");
  RunRecord run = honest_run();
  analysis.checkpoint = "last";
  EXPECT_THAT(check_analysis(analysis, run), IsEmpty());
  run.steps = 6000;
  EXPECT_THAT(check_analysis(analysis, run),
              ElementsAre("it is of step 5000; the run's last weights are those of 6000: analyze "
                          "the run again"));
  analysis.checkpoint = "step_5000";
  EXPECT_THAT(check_analysis(analysis, run), IsEmpty());
  analysis.checkpoint = "best";
  run.best_val->step = 2500;
  EXPECT_THAT(check_analysis(analysis, run),
              ElementsAre(HasSubstr("best weights are those of 2500")));
  run.status = RunStatus::kDiverged;
  EXPECT_THAT(check_analysis(analysis, run), IsEmpty()) << "nothing was saved since";
}

TEST(CheckAnalysis, ThresholdsAreReachedWhenTheCurveSaysSo) {
  AnalysisRecord analysis = analysis_of("convergence");
  const RunRecord run = honest_run();
  analysis.convergence =
      ConvergenceResult{.eval_every = 2500,
                        .thresholds = {{0.3, 2500, 1}, {0.6, 5000, 2}, {0.9, {}, {}}},
                        .best = run.val_curve[1],
                        .last_step = 5000};
  EXPECT_THAT(check_analysis(analysis, run), IsEmpty());
  analysis.convergence->thresholds[1].step = 2500;
  analysis.convergence->thresholds[2].step = 5000;
  EXPECT_THAT(check_analysis(analysis, run),
              ElementsAre("an accuracy of 60.00% is reached at step 2500; by the run's record "
                          "reached at step 5000",
                          "an accuracy of 90.00% is reached at step 5000; by the run's record "
                          "never reached"));
  analysis.convergence = ConvergenceResult{.eval_every = 2500,
                                           .thresholds = {{0.6, {}, {}}},
                                           .best = run.val_curve[0],
                                           .last_step = 2500};
  EXPECT_THAT(check_analysis(analysis, run), IsEmpty()) << "the run was trained on";
  analysis.convergence->best->accuracy = 0.6;
  EXPECT_THAT(check_analysis(analysis, run),
              ElementsAre("its best validation is 60.00% at step 2500; by the run's record 50.00% "
                          "at step 2500"));
}

TEST(CheckAnalysis, ControlsBeginWithTheRunsOwnScore) {
  AnalysisRecord analysis = analysis_of("controls");
  analysis.split = "test";
  analysis.controls =
      ControlsResult{.scores = {{"none", "", Evaluation{5000, 1.5, 0.65, 2000}, ""},
                                {"shuffled tokens", "", Evaluation{5000, 1.5, 0.5, 2000}, ""}},
                     .baselines = {{"majority", 0.5}}};
  EXPECT_THAT(check_analysis(analysis, honest_run()), IsEmpty());
  analysis.controls->scores[0].score->accuracy = 0.8;
  analysis.controls->baselines["majority"] = 0.4;
  EXPECT_THAT(check_analysis(analysis, honest_run()),
              ElementsAre(HasSubstr("its accuracy on test is 80.00%"),
                          "the baseline 'majority' is not that of the run's record"));
  analysis.split = "val";
  analysis.controls->baselines.clear();
  EXPECT_THAT(check_analysis(analysis, honest_run()), IsEmpty()) << "another number of examples";
  analysis.controls->scores[0].score = Evaluation{5000, 1, 0.8, 1000};
  EXPECT_THAT(check_analysis(analysis, honest_run()),
              ElementsAre(HasSubstr("its accuracy on val is 80.00%")));
}

}  // namespace
}  // namespace lra
