#include "training/settings/budget.h"

#include <gtest/gtest.h>

namespace lra::training {
namespace {

TrainConfig config(const char* schedule, double rate, int64_t warmup, int64_t steps) {
  TrainConfig c;
  c.schedule = schedule;
  c.learning_rate = rate;
  c.warmup_steps = warmup;
  c.steps = steps;
  return c;
}

// Reference points of the released schedules.
TEST(Schedule, MatchesTheReleasedListopsRates) {
  const auto c = config("rsqrt", 0.05, 1000, 5000);
  EXPECT_EQ(learning_rate(c, 0), 0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1000), 0.0015811388300841897);
  EXPECT_DOUBLE_EQ(learning_rate(c, 4999), 0.0007071775024730361);
  EXPECT_DOUBLE_EQ(learning_rate(c, 9999), 0.0005000250018751563);
}

TEST(Schedule, MatchesTheReleasedTextRates) {
  const auto c = config("rsqrt", 0.05, 8000, 20000);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1000), 6.987712429686843e-05);
  EXPECT_DOUBLE_EQ(learning_rate(c, 8000), 0.0005590169943749475);
  EXPECT_DOUBLE_EQ(learning_rate(c, 19999), 0.0003535622297595087);
}

TEST(Schedule, MatchesTheReleasedImageAndPathfinderRates) {
  const auto image = config("cosine", 0.0005, 175, 35000);
  EXPECT_EQ(learning_rate(image, 0), 0);
  EXPECT_DOUBLE_EQ(learning_rate(image, 175), 0.0005);
  EXPECT_NEAR(learning_rate(image, 17675), 0.00025, 1e-15);
  EXPECT_NEAR(learning_rate(image, 34999), 3.119535793885686e-08, 1e-18);
  EXPECT_NEAR(learning_rate(config("cosine", 0.001, 312, 62400), 62399), 6.207979335454139e-08,
              1e-18);
}

TEST(Schedule, HasNoRampWithoutWarmup) {
  EXPECT_DOUBLE_EQ(learning_rate(config("constant", 0.3, 0, 10), 0), 0.3);
  EXPECT_DOUBLE_EQ(learning_rate(config("rsqrt", 0.3, 0, 10), 0), 0.3);
}

}  // namespace
}  // namespace lra::training
