#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lra {
namespace {

// Restores the number of threads that the other tests expect.
class ParallelTest : public testing::Test {
 protected:
  void SetUp() override { set_num_threads(4); }
  void TearDown() override { set_num_threads(before_); }
  const int before_ = num_threads();
};

TEST_F(ParallelTest, EachIndexIsVisitedOnce) {
  for (const int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
    parallel_for_each(count, [&](int64_t i) { ++visits.at(static_cast<size_t>(i)); });
    for (const auto& visit : visits) EXPECT_EQ(visit, 1);
  }
}

TEST_F(ParallelTest, RangesCoverEverythingOnceAndKeepTheGrain) {
  for (const int64_t count : {0, 1, 5, 64, 1001}) {
    for (const int64_t grain : {1, 10, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      std::atomic<int> ranges = 0;
      std::atomic<bool> fine = true;
      parallel_ranges(count, grain, [&](int64_t begin, int64_t end) {
        ++ranges;
        if (end - begin < grain && end - begin != count) fine = false;
        for (int64_t i = begin; i < end; ++i) ++visits.at(static_cast<size_t>(i));
      });
      for (const auto& visit : visits) EXPECT_EQ(visit, 1);
      EXPECT_TRUE(fine) << count << " " << grain;
      EXPECT_LE(ranges, 4);
      EXPECT_EQ(ranges == 0, count == 0);
    }
  }
}

TEST_F(ParallelTest, ExceptionsReachTheCaller) {
  const auto fail_at_3 = [](int64_t i) {
    if (i == 3) throw std::runtime_error("three");
  };
  EXPECT_THROW(parallel_for_each(10, fail_at_3), std::runtime_error);
  EXPECT_THROW(parallel_ranges(10, 1,
                               [&](int64_t begin, int64_t end) {
                                 for (int64_t i = begin; i < end; ++i) fail_at_3(i);
                               }),
               std::runtime_error);
}

TEST_F(ParallelTest, TheLowestFailureIsToldAndEndsTheLoop) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> begun = 0;
    const auto fail_from_7 = [&](int64_t i) {
      ++begun;
      if (i < 7) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (i >= 7) throw std::runtime_error(std::to_string(i));
    };
    try {
      parallel_for_each(100000, fail_from_7);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "7");
    }
    EXPECT_LT(begun, 1000);
  }
}

TEST_F(ParallelTest, NestedLoopsStillVisitEverything) {
  std::atomic<int> visits = 0;
  parallel_for_each(4, [&](int64_t) {
    parallel_for_each(5, [&](int64_t) { ++visits; });
    parallel_ranges(7, 1, [&](int64_t begin, int64_t end) { visits += int(end - begin); });
  });
  EXPECT_EQ(visits, 4 * (5 + 7));
}

TEST_F(ParallelTest, ThereIsAlwaysAThread) {
  set_num_threads(0);
  EXPECT_EQ(num_threads(), 1);
}

}  // namespace
}  // namespace lra
