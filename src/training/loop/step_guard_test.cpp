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
  const StepGuard guard(config_of("stop"));
  EXPECT_EQ(guard.fault(1, 1, {}), "");
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    EXPECT_EQ(guard.fault(bad, 1, {}), "the loss is not finite");
    EXPECT_EQ(guard.fault(1, bad, {}), "the gradient is not finite");
  }
}

TEST(StepGuard, FindsAGradientWhoseSquareAdamCannotHold) {
  EXPECT_EQ(StepGuard(config_of("stop")).fault(1, 1e18, {}), "");
  EXPECT_EQ(StepGuard(config_of("stop")).fault(1, 1e20, {}), "the gradient is not finite");
  TrainConfig clipped = config_of("stop");
  clipped.clip_norm = 1;
  EXPECT_EQ(StepGuard(clipped).fault(1, 1e20, {}), "") << "it is clipped to 1 first";
}

TEST(StepGuard, FindsSpikesOnceItKnowsTheMean) {
  const StepGuard guard(config_of("stop", 4));
  Health health;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(guard.fault(1000, 1000, health), "") << "after " << i << " steps";
    guard.passed(2, 0.5, health);
  }
  EXPECT_DOUBLE_EQ(health.mean_loss, 2);
  EXPECT_DOUBLE_EQ(health.mean_norm, 0.5);
  EXPECT_EQ(guard.fault(7.9, 1.9, health), "");
  EXPECT_EQ(guard.fault(9, 1, health), "the loss is 4.5 times its running mean");
  EXPECT_EQ(guard.fault(2, 3, health), "the gradient norm is 6.0 times its running mean");
}

TEST(StepGuard, LetsTheMeanFollow) {
  const StepGuard guard(config_of("stop", 4));
  Health health;
  for (int i = 0; i < 50; ++i) guard.passed(100, 100, health);
  for (int i = 0; i < 500; ++i) guard.passed(1, 1, health);
  EXPECT_NE(guard.fault(10, 1, health), "");
}

TEST(StepGuard, RemembersNothingWithoutSpikesAndBadSteps) {
  Health health;
  StepGuard(config_of("skip")).passed(1, 1, health);
  EXPECT_EQ(health, Health{});
}

TEST(StepGuard, StopsAtOnceWhenToldTo) {
  Health health;
  EXPECT_EQ(StepGuard(config_of("stop")).remedy(health), Remedy::kStop);
  EXPECT_EQ(health, Health{});
}

TEST(StepGuard, SkipsOnlySoManyInARow) {
  const StepGuard guard(config_of("skip"));
  Health health;
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(guard.remedy(health), Remedy::kSkip);
    EXPECT_EQ(guard.remedy(health), Remedy::kSkip);
    guard.passed(1, 1, health);
  }
  EXPECT_EQ(health.skipped, 10);
  (void)guard.remedy(health);
  (void)guard.remedy(health);
  EXPECT_EQ(guard.remedy(health), Remedy::kStop);
  EXPECT_EQ(health.skipped, 12) << "the last one was not left out";
}

TEST(StepGuard, RollsBackOnlySoOften) {
  const StepGuard guard(config_of("roll_back"));
  Health health;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(guard.remedy(health), Remedy::kRollBack);
    guard.passed(1, 1, health);
  }
  EXPECT_EQ(guard.remedy(health), Remedy::kStop);
  EXPECT_EQ(health.roll_backs, 3);
}

}  // namespace
}  // namespace lra::training
