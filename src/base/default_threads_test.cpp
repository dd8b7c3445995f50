#include "base/default_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace lra {
namespace {

using testing::HasSubstr;
constexpr double kNoQuota = std::numeric_limits<double>::infinity();

TEST(DefaultThreads, AreOneForEachProcessorWithoutAQuota) {
  EXPECT_EQ(default_threads(0, 8, kNoQuota).count, 8);
  EXPECT_THAT(default_threads(0, 8, kNoQuota).limit, HasSubstr("processors that this process may"));
}

TEST(DefaultThreads, AreNoMoreThanTheQuotaRoundedUp) {
  EXPECT_EQ(default_threads(0, 8, 2).count, 2);
  EXPECT_EQ(default_threads(0, 8, 2.01).count, 3);
  EXPECT_EQ(default_threads(0, 8, 0.25).count, 1);
  EXPECT_EQ(default_threads(0, 8, 1.5).limit, "CPU quota of 1.5 processors");
}

TEST(DefaultThreads, AreNoMoreThanProcessorsUnderALargerQuota) {
  EXPECT_EQ(default_threads(0, 2, 1.5).count, 2);
  EXPECT_EQ(default_threads(0, 2, 64).count, 2);
  EXPECT_THAT(default_threads(0, 2, 1.5).limit, HasSubstr("processors that this process may"));
}

TEST(DefaultThreads, AreThoseOfOpenMpWhereTheUserSetThem) {
  EXPECT_EQ(default_threads(4, 8, 1).count, 4);
  EXPECT_EQ(default_threads(4, 8, 1).limit, "OMP_NUM_THREADS");
}

TEST(DefaultThreads, OfThisProcessAreAtLeastOne) { EXPECT_GE(default_threads().count, 1); }

}  // namespace
}  // namespace lra
