#include "tasks/pathfinder/occupancy.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace lra::tasks {
namespace {

// A dash of one pixel.
Footprint spot(uint8_t occupied, int size, int margin) {
  Dash dash;
  dash.cells.push_back({.at = {0, 0}, .occupied = occupied});
  return Occupancy::footprint(dash, margin, size);
}

// The rule in plain loops: the largest value within the margin of `p`; pixels outside do not count.
int plain_dilation(const Occupancy& occupancy, Point p, int margin) {
  int most = 0;
  for (int y = -margin; y <= margin; ++y) {
    for (int x = -margin; x <= margin; ++x) {
      const Point at = p + Point{y, x};
      if (y * y + x * x > margin * margin || !occupancy.contains(at)) continue;
      most = std::max<int>(most, occupancy.value(at));
    }
  }
  return most;
}

TEST(Occupancy, OnlyTheFrameIsTakenAtFirst) {
  for (const int size : {32, 64, 128, 256}) {
    const Occupancy occupancy(size, 3, 1);
    EXPECT_EQ(occupancy.num_untaken(), int64_t{size - 6} * (size - 6));
  }
}

TEST(Occupancy, ASumOfOnePointEightIsACollision) {
  Occupancy occupancy(32, 1, 1);
  occupancy.add(spot(255, 32, 1), {9, 9});
  EXPECT_TRUE(occupancy.has_room(spot(203, 32, 1), {9, 9}));
  EXPECT_FALSE(occupancy.has_room(spot(204, 32, 1), {9, 9}));
  EXPECT_TRUE(occupancy.has_room(spot(255, 32, 1), {9, 10}));
}

TEST(Occupancy, DilationIsThatOfPlainLoopsAlsoAtTheBorder) {
  for (const auto& [size, margin] : {std::pair{32, 1}, {64, 1}, {128, 2}, {128, 3}, {256, 3}}) {
    const DashStyle style{.length = 5, .thickness_ceil = 2, .line_width = 3, .margin = margin};
    Occupancy occupancy(size, 1, margin);
    RandomStream random(3);
    for (int i = 0; i < 60; ++i) {
      const Dash dash = draw_dash(style, fine_end(style, 0.1 * i));
      const Point start{static_cast<int>(random.below(static_cast<uint32_t>(size))),
                        static_cast<int>(random.below(static_cast<uint32_t>(size)))};
      occupancy.add(Occupancy::footprint(dash, margin, size), start);
      for (const Dash::Cell& cell : dash.cells) {
        if (occupancy.contains(start + cell.at)) {
          ASSERT_GE(occupancy.value(start + cell.at), cell.occupied);
        }
      }
    }
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        ASSERT_EQ(*occupancy.dilated({y, x}), plain_dilation(occupancy, {y, x}, margin));
      }
    }
    for (const Point outside : {Point{-1, 0}, {0, size}, {size + 15, 3}, {5, -16}}) {
      EXPECT_EQ(*occupancy.dilated(outside), 255);
    }
  }
}

TEST(Occupancy, RollingBackRestoresTheLastCommit) {
  Occupancy occupancy(64, 1, 2);
  occupancy.add(spot(100, 64, 2), {5, 5});
  occupancy.commit();
  const int64_t before = occupancy.num_untaken();
  EXPECT_EQ(before, 62 * 62 - 1);
  occupancy.add(spot(200, 64, 2), {5, 5});
  occupancy.add(spot(255, 64, 2), {40, 63 - 1});
  occupancy.roll_back();
  EXPECT_EQ(occupancy.value({5, 5}), 100);
  EXPECT_EQ(occupancy.value({40, 62}), 0);
  EXPECT_EQ(*occupancy.dilated({40, 60}), 0);
  occupancy.add(spot(255, 64, 2), {20, 20});
  occupancy.commit();
  EXPECT_EQ(occupancy.value({5, 5}), 100);
  EXPECT_EQ(occupancy.value({20, 20}), 255);
  EXPECT_EQ(occupancy.num_untaken(), before - 1);
}

TEST(Occupancy, FreePixelsAreThoseThatAPlainLoopFinds) {
  for (const int size : {32, 64, 128}) {
    Occupancy occupancy(size, 2, 1);
    for (int i = 0; i < size; ++i) {
      occupancy.add(spot(static_cast<uint8_t>(60 + 3 * i % 190), size, 1), {i, 7 * i % size});
    }
    occupancy.commit();
    const std::vector<Point> kernel{{0, 0}, {-3, 2}, {4, -5}, {1, 9}};
    occupancy.find_free(kernel);
    int64_t next = 0;
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        bool is_free = true;
        for (const Point offset : kernel) {
          const Point p = Point{y, x} + offset;
          if (occupancy.contains(p)) is_free = is_free && occupancy.value(p) <= 76;
        }
        if (!is_free) continue;
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
