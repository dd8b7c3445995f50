#include "tasks/occupancy.h"

#include <gtest/gtest.h>

namespace lra::tasks {
namespace {

Dash spot(uint8_t occupied) {
  Dash dash;
  dash.cells.push_back({.at = {0, 0}, .occupied = occupied});
  return dash;
}

TEST(Occupancy, OnlyTheFrameIsTakenAtFirst) {
  for (const int size : {32, 64, 128, 256}) {
    const Occupancy occupancy(size, 3);
    EXPECT_EQ(occupancy.num_untaken(), int64_t{size - 6} * (size - 6));
  }
}

TEST(Occupancy, ASumOfOnePointEightIsACollision) {
  Occupancy occupancy(32, 1);
  occupancy.add(spot(255), {9, 9});
  EXPECT_TRUE(occupancy.has_room(spot(203), {9, 9}));
  EXPECT_FALSE(occupancy.has_room(spot(204), {9, 9}));
  EXPECT_TRUE(occupancy.has_room(spot(255), {9, 10}));
}

TEST(Occupancy, RollingBackRestoresTheLastCommit) {
  Occupancy occupancy(64, 1);
  occupancy.add(spot(100), {5, 5});
  occupancy.commit();
  const int64_t before = occupancy.num_untaken();
  occupancy.add(spot(200), {5, 5});
  occupancy.add(spot(255), {40, 63 - 1});
  occupancy.roll_back();
  EXPECT_EQ(occupancy.num_untaken(), before);
  EXPECT_EQ(occupancy.largest({5, 5}, {{0, 0}}), 100);
  EXPECT_EQ(occupancy.largest({40, 62}, {{0, 0}}), 0);
}

TEST(Occupancy, FreePixelsAreThoseThatAPlainLoopFinds) {
  for (const int size : {32, 64, 128}) {
    Occupancy occupancy(size, 2);
    for (int i = 0; i < size; ++i) {
      occupancy.add(spot(static_cast<uint8_t>(60 + 3 * i % 190)), {i, 7 * i % size});
    }
    const std::vector<Point> kernel{{0, 0}, {-3, 2}, {4, -5}, {1, 9}};
    occupancy.find_free(kernel);
    int64_t next = 0;
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        if (occupancy.largest({y, x}, kernel) > 76) continue;
        ASSERT_LT(next, occupancy.num_free());
        EXPECT_EQ(occupancy.free_pixel(next++), (Point{y, x}));
      }
    }
    EXPECT_EQ(next, occupancy.num_free());
    EXPECT_GT(next, 0);
  }
}

}  // namespace
}  // namespace lra::tasks
