#include "analysis/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lra::analysis {
namespace {

// Lightness in OKLab of the color as a screen shows it.
double lightness(const std::array<uint8_t, 3>& rgb) {
  double linear[3];
  for (size_t i = 0; i < 3; ++i) {
    const double x = rgb[i] / 255.0;
    linear[i] = x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
  }
  const double l = 0.4122214708 * linear[0] + 0.5363325363 * linear[1] + 0.0514459929 * linear[2];
  const double m = 0.2119034982 * linear[0] + 0.6806995451 * linear[1] + 0.1073969566 * linear[2];
  const double s = 0.0883024619 * linear[0] + 0.2817188376 * linear[1] + 0.6299787005 * linear[2];
  return 0.2104542553 * std::cbrt(l) + 0.7936177850 * std::cbrt(m) - 0.0040720468 * std::cbrt(s);
}

TEST(HeatMap, SequentialColoursGrowLighterInEvenSteps) {
  for (int i = 0; i <= 20; ++i) {
    EXPECT_NEAR(lightness(colour_at(ColourScale::kSequential, i / 20.0)), 0.15 + 0.82 * i / 20.0,
                0.01)
        << i;
  }
}

TEST(HeatMap, DivergingColoursGrowDarkerFromTheMiddleAlike) {
  for (int i = 0; i <= 10; ++i) {
    const auto cold = colour_at(ColourScale::kDiverging, 0.5 - i / 20.0);
    const auto warm = colour_at(ColourScale::kDiverging, 0.5 + i / 20.0);
    EXPECT_NEAR(lightness(cold), 0.97 - 0.55 * i / 10.0, 0.01) << i;
    EXPECT_NEAR(lightness(cold), lightness(warm), 0.01) << i;
    if (i > 1) {
      EXPECT_GT(cold[2], cold[0]) << i;
      EXPECT_GT(warm[0], warm[2]) << i;
    }
  }
}

TEST(HeatMap, LaysValuesOutLineByLine) {
  const std::vector<double> values = {0, 1, 2, -5, 9};
  const auto image = heat_map(values, 2, {ColourScale::kGray, 0, 2}, 3);
  ASSERT_EQ(image.width, 6);
  ASSERT_EQ(image.height, 9);
  const auto red = [&](int x, int y) {
    return static_cast<int>(image.pixels[static_cast<size_t>(3 * (y * 6 + x))]);
  };
  EXPECT_EQ(red(2, 2), 0);
  EXPECT_EQ(red(3, 0), 128);
  EXPECT_EQ(red(0, 3), 255);
  EXPECT_EQ(red(5, 5), 0);    // below the scale
  EXPECT_EQ(red(0, 8), 255);  // above it
  EXPECT_EQ(red(3, 8), 128);  // nothing there
}

TEST(HeatMap, TilesStandWhereTheirPixelDoes) {
  std::vector<double> values(16, 0.0);
  values[4 * 2 + 1] = 1;  // tile 2, below the first; its pixel 1, at the right of its first line
  const auto image = tiled_heat_map(values, 2, 1, {ColourScale::kGray, 0, 1});
  ASSERT_EQ(image.width, 7);
  const auto red = [&](int x, int y) {
    return static_cast<int>(image.pixels[static_cast<size_t>(3 * (y * 7 + x))]);
  };
  for (int y = 0; y < 7; ++y) {
    for (int x = 0; x < 7; ++x) {
      const bool line = x % 3 == 0 || y % 3 == 0;
      EXPECT_EQ(red(x, y), line ? 128 : x == 2 && y == 4 ? 255 : 0) << x << " " << y;
    }
  }
}

TEST(HeatMap, ShowsEveryOtherTile) {
  std::vector<double> values(81, 0.0);
  values[9 * 8 + 4] = 1;  // the middle of the last tile, which is the last of four that are shown
  const auto image = tiled_heat_map(values, 3, 2, {ColourScale::kGray, 0, 1});
  ASSERT_EQ(image.width, 9);
  for (int place = 0; place < 81; ++place) {
    const bool line = place % 9 % 4 == 0 || place / 9 % 4 == 0;
    EXPECT_EQ(static_cast<int>(image.pixels[static_cast<size_t>(3 * place)]), line ? 128
                                                                              : place == 6 * 9 + 6
                                                                                  ? 255
                                                                                  : 0)
        << place;
  }
}

}  // namespace
}  // namespace lra::analysis
