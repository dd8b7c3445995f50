#include "tasks/pathfinder/dash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>
#include <set>

#include "base/hash.h"

namespace lra::tasks {
namespace {

constexpr DashStyle kStyles[] = {
    {.length = 2, .thickness_ceil = 1, .line_width = 1, .margin = 1},
    {.length = 5, .thickness_ceil = 1, .line_width = 2, .margin = 1},
    {.length = 5, .thickness_ceil = 2, .line_width = 3, .margin = 2},
    {.length = 5, .thickness_ceil = 2, .line_width = 4, .margin = 3},
};

std::set<Point> ends_of(const DashStyle& style) {
  std::set<Point> ends;
  for (int i = -3600; i < 3600; ++i) ends.insert(fine_end(style, i * std::numbers::pi / 3600));
  return ends;
}

TEST(PathfinderDash, ThinLinesFollowBresenham) {
  EXPECT_EQ(line_pixels({-3, 2}, 1), (std::vector<Point>{{-3, 2}, {-2, 1}, {-1, 1}, {0, 0}}));
  EXPECT_EQ(line_pixels({2, 4}, 1), (std::vector<Point>{{0, 0}, {1, 1}, {1, 2}, {2, 3}, {2, 4}}));
  EXPECT_EQ(line_pixels({0, -3}, 1), (std::vector<Point>{{0, -3}, {0, -2}, {0, -1}, {0, 0}}));
}

// The sets of pixels were compared with the rasters of the imaging library for every end that a
// dash can have: no difference at any of the four sizes. The hashes keep them so.
TEST(PathfinderDash, EveryLineHasThePixelsOfTheImagingLibrary) {
  std::string hashes;
  for (const DashStyle& style : kStyles) {
    std::string text;
    for (const Point end : ends_of(style)) {
      for (const Point p : line_pixels(end, style.line_width)) {
        text += std::to_string(p.y) + "," + std::to_string(p.x) + " ";
      }
      text += "\n";
    }
    hashes += to_hex(hash64(text)) + " ";
  }
  EXPECT_EQ(hashes, "981daa60cfb3f414 70ef0c8218b17410 95dc85a399d8b41d a8683be144adc8c2 ");
}

// Peaks measured on the released rendering.
TEST(PathfinderDash, OvershootsAsTheReleasedRenderingDoes) {
  const float peaks[] = {0.600F, 1.077F, 1.217F, 1.218F};
  for (size_t i = 0; i < 4; ++i) {
    float most = 0;
    for (const Point end : ends_of(kStyles[i])) {
      const Dash dash = draw_dash(kStyles[i], end);
      most = std::max(most, *std::max_element(dash.picture.begin(), dash.picture.end()));
    }
    EXPECT_NEAR(most, peaks[i], 5e-4);
  }
}

TEST(PathfinderDash, StepsRoundUpAndHalfATurnDependsOnWhereItBegins) {
  const double pi = std::numbers::pi;
  EXPECT_EQ(round_up({}, displacement(0.25 * pi, 3)), (Point{3, 3}));
  EXPECT_EQ(round_up({}, displacement(-0.75 * pi, 3)), (Point{-2, -2}));
  EXPECT_EQ(round_up({9, 9}, displacement(pi, 4)), (Point{9, 5}));
  EXPECT_EQ(round_up({1, 9}, displacement(pi, 4)), (Point{2, 5}));
  EXPECT_EQ(round_up({9, 9}, displacement(-pi, 4)), (Point{9, 5}));
}

TEST(PathfinderDash, HalvesGoToTheEvenNeighbour) {
  EXPECT_EQ(round_nearest({8, 9}, {.dy = 3.5, .dx = 3.5}), (Point{12, 12}));
  EXPECT_EQ(round_nearest({8, 9}, {.dy = -3.5, .dx = -3.5}), (Point{4, 6}));
  EXPECT_EQ(round_nearest({8, 9}, {.dy = 0.4, .dx = 0.6}), (Point{8, 10}));
}

TEST(PathfinderDash, WeightsOfTheFilterSumToOne) {
  const Reduction reduction(17, 9);
  ASSERT_EQ(reduction.size(), 9);
  for (int i = 0; i < 9; ++i) {
    double sum = 0;
    for (const double weight : reduction.taps(i).weights) sum += weight;
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST(PathfinderDash, DiscsHaveAPlateauOfOneAndTheReleasedOvershoot) {
  const float peaks[] = {1.1139F, 1.1610F, 1.1244F, 1.1179F};
  const int sizes[] = {32, 64, 128, 256};
  const double radii[] = {1.5, 2.5, 3, 5};
  for (size_t i = 0; i < 4; ++i) {
    const int size = sizes[i], middle = size / 2;
    std::vector<float> image(static_cast<size_t>(size) * static_cast<size_t>(size));
    add_disc(Reduction(2 * size, size), {middle, middle}, radii[i], image);
    EXPECT_NEAR(*std::max_element(image.begin(), image.end()), peaks[i], 5e-5);
    EXPECT_EQ(image[0], 0);
    if (size == 32) {
      EXPECT_EQ(std::count_if(image.begin(), image.end(), [](float v) { return v > 0.5F; }), 8);
    }
  }
}

}  // namespace
}  // namespace lra::tasks
