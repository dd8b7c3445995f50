#include "analysis/timed_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lra::analysis {
namespace {

using testing::HasSubstr;

TEST(TimedWindows, MedianAndSpread) {
  const TimedWindows odd({3, 1, 2});
  EXPECT_EQ(odd.median(), 2);
  EXPECT_EQ(odd.slowest(), 1);
  EXPECT_EQ(odd.fastest(), 3);
  EXPECT_EQ(TimedWindows({4, 1, 2, 3}).median(), 2.5);
}

TEST(TimedWindows, QuietWindowsHaveNoWarning) {
  EXPECT_FALSE(TimedWindows({1}).warning());
  EXPECT_FALSE(TimedWindows({10, 10.5, 9.6, 10.1}).warning());
}

TEST(TimedWindows, WarnsOfSpreadAndTellsAFallFromNoise) {
  EXPECT_THAT(TimedWindows({10, 12, 9}).warning().value(), HasSubstr("30 %"));
  EXPECT_THAT(TimedWindows({10, 12, 9}).warning().value(), HasSubstr("something else"));
  EXPECT_THAT(TimedWindows({12, 10, 9}).warning().value(), HasSubstr("hot"));
}

TEST(TimedWindows, TakesAtLeastOneStepPerWindow) {
  int steps = 0;
  timed_windows([&] { ++steps; }, 3, 0);
  EXPECT_EQ(steps, 3);
}

TEST(TimedWindows, CallsItsHooksAroundEachWindow) {
  std::vector<std::string> calls;
  const TimedWindows windows = timed_windows(
      [&] { calls.push_back("step"); }, 2, 0,
      {.before = [&] { calls.push_back("before"); },
       .after = [&](double rate) { calls.push_back(rate > 0 ? "after" : "no rate"); }});
  const std::vector<std::string> one = {"before", "step", "after"};
  std::vector<std::string> both = one;
  both.insert(both.end(), one.begin(), one.end());
  EXPECT_EQ(calls, both);
}

}  // namespace
}  // namespace lra::analysis
