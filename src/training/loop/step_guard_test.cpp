#include "training/loop/step_guard.h"

#include <gtest/gtest.h>

#include <limits>

namespace lra::training {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TrainConfig config_of(const std::string& policy, double spike_factor = 0) {
  TrainConfig config;
  config.on_nonfinite = policy;
  config.spike_factor = spike_factor;
  config.max_skips = 2;
  config.max_roll_backs = 3;
  return config;
}

TEST(StepGuard, FindsWhatIsNotFinite) {
  const TrainConfig config = config_of("stop");
  EXPECT_EQ(fault_of(config, 1, 1, {}), "");
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    EXPECT_EQ(fault_of(config, bad, 1, {}), "the loss is not finite");
    EXPECT_EQ(fault_of(config, 1, bad, {}), "the gradient is not finite");
  }
}

TEST(StepGuard, FindsAGradientWhoseSquareAdamCannotHold) {
  EXPECT_EQ(fault_of(config_of("stop"), 1, 1e18, {}), "");
  EXPECT_EQ(fault_of(config_of("stop"), 1, 1e20, {}), "the gradient is not finite");
  TrainConfig clipped = config_of("stop");
  clipped.clip_norm = 1;
  EXPECT_EQ(fault_of(clipped, 1, 1e20, {}), "") << "it is clipped to 1 first";
}

TEST(StepGuard, FindsSpikesOnceItKnowsTheMean) {
  const TrainConfig config = config_of("stop", 4);
  Health health;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(fault_of(config, 1000, 1000, health), "") << "after " << i << " steps";
    count_good_step(config, 2, 0.5, health);
  }
  EXPECT_DOUBLE_EQ(health.mean_loss, 2);
  EXPECT_DOUBLE_EQ(health.mean_norm, 0.5);
  EXPECT_EQ(fault_of(config, 7.9, 1.9, health), "");
  EXPECT_EQ(fault_of(config, 9, 1, health), "the loss is 4.5 times its running mean");
  EXPECT_EQ(fault_of(config, 2, 3, health), "the gradient norm is 6.0 times its running mean");
}

TEST(StepGuard, LetsTheMeanFollow) {
  const TrainConfig config = config_of("stop", 4);
  Health health;
  for (int i = 0; i < 50; ++i) count_good_step(config, 100, 100, health);
  for (int i = 0; i < 500; ++i) count_good_step(config, 1, 1, health);
  EXPECT_NE(fault_of(config, 10, 1, health), "");
}

TEST(StepGuard, RemembersNothingWithoutSpikesAndBadSteps) {
  Health health;
  count_good_step(config_of("skip"), 1, 1, health);
  EXPECT_EQ(health, Health{});
}

TEST(StepGuard, StopsAtOnceWhenToldTo) {
  Health health;
  EXPECT_EQ(remedy_for(config_of("stop"), health), Remedy::kStop);
  EXPECT_EQ(health, Health{});
}

TEST(StepGuard, SkipsOnlySoManyInARow) {
  const TrainConfig config = config_of("skip");
  Health health;
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(remedy_for(config, health), Remedy::kSkip);
    EXPECT_EQ(remedy_for(config, health), Remedy::kSkip);
    count_good_step(config, 1, 1, health);
  }
  EXPECT_EQ(health.skipped, 10);
  (void)remedy_for(config, health);
  (void)remedy_for(config, health);
  EXPECT_EQ(remedy_for(config, health), Remedy::kStop);
  EXPECT_EQ(health.skipped, 12) << "the last one was not left out";
}

TEST(StepGuard, RollsBackOnlySoOften) {
  const TrainConfig config = config_of("roll_back");
  Health health;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(remedy_for(config, health), Remedy::kRollBack);
    count_good_step(config, 1, 1, health);
  }
  EXPECT_EQ(remedy_for(config, health), Remedy::kStop);
  EXPECT_EQ(health.roll_backs, 3);
}

}  // namespace
}  // namespace lra::training
