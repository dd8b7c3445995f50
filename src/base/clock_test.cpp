#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace lra {
namespace {

TEST(Clock, UtcTextIsIso8601) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(951827696.9), "2000-02-29T12:34:56Z");
  EXPECT_EQ(utc_text(-0.5), "1969-12-31T23:59:59Z");
}

TEST(Clock, NowIsAfterThisWasWritten) {
  EXPECT_GT(unix_seconds(), 1.7e9);
  EXPECT_GT(utc_now(), "2024");
  EXPECT_EQ(utc_now().size(), 20u);
}

TEST(Stopwatch, MeasuresAndRestarts) {
  Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(watch.seconds(), 0.02);
  watch.restart();
  EXPECT_LT(watch.seconds(), 0.02);
}

}  // namespace
}  // namespace lra
