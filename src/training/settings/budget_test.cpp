#include "training/settings/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/test_tensors.h"
#include "training/run/test_runs.h"

namespace lra::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrainConfig config_of(int64_t batch_size, int64_t steps) {
  TrainConfig config;
  config.batch_size = batch_size;
  config.steps = steps;
  config.warmup_steps = 0;
  return config;
}

TEST(Budget, IsInStepsEpochsOrExamples) {
  TrainConfig config = config_of(8, 12);
  EXPECT_EQ(planned_steps(config, 100), 12);
  config.epochs = 2;
  EXPECT_EQ(planned_steps(config, 100), 25);
  config.epochs = 0.5;
  EXPECT_EQ(planned_steps(config, 100), 7) << "the last step is a whole one";
  config.epochs = 1e-9;
  EXPECT_EQ(planned_steps(config, 100), 1);
  config.epochs = 0;
  config.examples = 17;
  EXPECT_EQ(planned_steps(config, 100), 3);
  config.examples = int64_t{1} << 46;
  EXPECT_THROW((void)planned_steps(config, 100), Error);
}

TEST(Budget, ContradictionsAreRefused) {
  for (const std::vector<std::string>& sets :
       std::vector<std::vector<std::string>>{{"train.epochs=1", "train.examples=1"},
                                             {"train.batch_size=4", "train.accumulate=5"},
                                             {"train.spike_factor=1"},
                                             {"train.spike_factor=0.5"},
                                             {"train.on_nonfinite=ignore"}}) {
    EXPECT_THROW((void)tiny_run(sets), Error) << sets[0];
  }
  EXPECT_NO_THROW((void)tiny_run({"train.accumulate=8"}));
}

TEST(Budget, EndsWhenTheTimeIsOver) {
  TrainConfig config = config_of(8, 100);
  EXPECT_EQ(early_end(config, {.step = 5}, 1e9), "");
  config.max_seconds = 60;
  EXPECT_EQ(early_end(config, {.step = 5}, 59.9), "");
  EXPECT_THAT(early_end(config, {.step = 5}, 60), HasSubstr("max_seconds, 1:00"));
  EXPECT_EQ(early_end(config, {.step = 0}, 60), "") << "one step is always made";
  EXPECT_TRUE(is_end_by_time(early_end(config, {.step = 5}, 60)));
}

TEST(Budget, EndsWhenValidationsGetNoBetter) {
  TrainConfig config = config_of(8, 100);
  config.eval_every = 10;
  TrainProgress progress{.step = 40, .last_eval_step = 40, .best_step = 10};
  EXPECT_EQ(early_end(config, progress, 0), "");
  config.patience = 3;
  EXPECT_THAT(early_end(config, progress, 0), HasSubstr("in 3 (train.patience)"));
  EXPECT_FALSE(is_end_by_time(early_end(config, progress, 0)));
  progress.best_step = 20;
  EXPECT_EQ(early_end(config, progress, 0), "");
  progress.best_step = -1;
  EXPECT_EQ(early_end(config, progress, 0), "") << "there was no validation yet";
}

TEST(Budget, WarnsOfAScheduleThatDoesNotFit) {
  TrainConfig config = config_of(8, 100);
  EXPECT_THAT(schedule_warnings(config), IsEmpty());
  config.warmup_steps = 99;
  EXPECT_THAT(schedule_warnings(config), IsEmpty());
  config.warmup_steps = 100;
  EXPECT_THAT(schedule_warnings(config), ElementsAre(HasSubstr("never leaves warm-up")));
  config.warmup_steps = 10;
  config.cycle_steps = 50;
  EXPECT_THAT(schedule_warnings(config), IsEmpty()) << "rsqrt has no cycles";
  config.schedule = "cosine";
  EXPECT_THAT(schedule_warnings(config), ElementsAre(HasSubstr("after step 60 of 100")));
  config.cycle_steps = 90;
  EXPECT_THAT(schedule_warnings(config), IsEmpty());
  config.learning_rate = 0;
  EXPECT_THAT(schedule_warnings(config), ElementsAre(HasSubstr("nothing is learned")));
}

TEST(Budget, KnowsTheLastScheduledCheckpoint) {
  TrainConfig config = config_of(8, 100);
  config.eval_every = 10;
  EXPECT_EQ(last_scheduled_checkpoint(config, 9), 0);
  EXPECT_EQ(last_scheduled_checkpoint(config, 10), 10);
  EXPECT_EQ(last_scheduled_checkpoint(config, 29), 20);
  config.checkpoint_every = 7;
  EXPECT_EQ(last_scheduled_checkpoint(config, 9), 7);
  EXPECT_EQ(last_scheduled_checkpoint(config, 29), 28);
}

// A cosine over the steps of the run starts over at a high rate when the run gets more steps.
TEST(Budget, TellsTheJumpOfTheRateWhereARunGoesOn) {
  TrainConfig before = config_of(8, 20);
  before.schedule = "cosine";
  before.warmup_steps = 2;
  TrainConfig now = before;
  now.steps = 40;
  EXPECT_THAT(rate_jump(before, now, 20), HasSubstr("the learning rate rises from "));
  EXPECT_THAT(rate_jump(before, now, 20), HasSubstr("after step 20: the cosine now spans 40"));
  before.schedule = now.schedule = "constant";
  EXPECT_EQ(rate_jump(before, now, 20), "");
  now.learning_rate = before.learning_rate / 10;
  EXPECT_THAT(rate_jump(before, now, 20), HasSubstr("falls"));
}

}  // namespace
}  // namespace lra::training
