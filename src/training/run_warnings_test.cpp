#include "training/run_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lra::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunRecord tested(double val, double test, int64_t num_examples) {
  RunRecord record;
  record.val_curve = {{.step = 5, .accuracy = 0.2, .num_examples = num_examples},
                      {.step = 10, .accuracy = val, .num_examples = num_examples}};
  record.test = Evaluation{.step = 10, .accuracy = test, .num_examples = num_examples};
  return record;
}

TEST(TestWarnings, AreOfATestFarFromTheValidationOfTheSameWeights) {
  EXPECT_THAT(test_warnings(tested(1, 0.5, 500)), ElementsAre(HasSubstr("50.0% of the test")));
  EXPECT_THAT(test_warnings(tested(0.8, 0.7, 5000)), IsEmpty());
  EXPECT_THAT(test_warnings(tested(0.7, 0.9, 5000)), IsEmpty());
  EXPECT_THAT(test_warnings(tested(0.12, 0.83, 200)), ElementsAre(HasSubstr("83.0% of the test")));
  EXPECT_THAT(test_warnings(tested(0.6, 0.4, 20)), IsEmpty()) << "by chance";
  RunRecord untested = tested(1, 0, 500);
  untested.test.reset();
  EXPECT_THAT(test_warnings(untested), IsEmpty());
}

TEST(SettingWarnings, AreOfDecayAndDropoutThatLeaveNothing) {
  RunConfig config;
  config.train.learning_rate = 0.001;
  config.train.weight_decay = 0.1;
  config.model_config.dropout = 0.5;
  EXPECT_THAT(setting_warnings(config), IsEmpty());
  config.train.weight_decay = 1000;
  config.model_config.dropout = 0.9;
  EXPECT_THAT(setting_warnings(config), ElementsAre(HasSubstr("takes 100% of every weight"),
                                                    HasSubstr("dropout zeroes 90%")));
}

TEST(LossWarnings, AreOfLossesFarAboveThatOfChance) {
  RunRecord record = tested(0.1, 0.1, 500);
  record.test->loss = 20;
  EXPECT_THAT(loss_warnings(record, 10), IsEmpty());
  record.test->loss = 8.8e6;
  EXPECT_THAT(loss_warnings(record, 10),
              ElementsAre(HasSubstr("that of equal probabilities 2.30")));
}

TEST(SelectionWarnings, AreOfWeightsChosenByTheTest) {
  RunRecord record = tested(0.8, 0.8, 500);
  record.validation = "test";
  record.checkpoint = "best";
  EXPECT_THAT(selection_warnings(record), ElementsAre(HasSubstr("the test split chose")));
  record.checkpoint = "last";
  EXPECT_THAT(selection_warnings(record), IsEmpty());
  record.checkpoint = "best";
  record.validation = "own";
  EXPECT_THAT(selection_warnings(record), IsEmpty());
}

}  // namespace
}  // namespace lra::training
