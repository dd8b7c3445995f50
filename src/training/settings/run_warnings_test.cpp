#include "training/settings/run_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lra::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunRecord tested(double accuracy) {
  RunRecord record;
  record.test = Evaluation{.step = 10, .accuracy = accuracy, .num_examples = 500};
  return record;
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
  RunRecord record = tested(0.1);
  record.test->loss = 20;
  EXPECT_THAT(loss_warnings(record, 10), IsEmpty());
  record.test->loss = 8.8e6;
  EXPECT_THAT(loss_warnings(record, 10),
              ElementsAre(HasSubstr("that of equal probabilities 2.30")));
}

TEST(SelectionWarnings, AreOfWeightsChosenByTheTest) {
  RunRecord record = tested(0.8);
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
