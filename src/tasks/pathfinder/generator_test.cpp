#include "tasks/pathfinder/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/parallel.h"
#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

std::vector<PathfinderImage> draw_many(int size, int difficulty, int64_t count) {
  const PathfinderGenerator generator({.size = size, .difficulty = difficulty}, 11);
  std::vector<PathfinderImage> images(static_cast<size_t>(count));
  parallel_for_each(count, [&](int64_t i) { images[static_cast<size_t>(i)] = generator.draw(i); });
  return images;
}

struct Statistics {
  double gray = 0, share_lit = 0, attempts = 0, distractors = 0, apart = 0, label = 0;
};

Statistics statistics_of(const std::vector<PathfinderImage>& images) {
  Statistics sums;
  for (const PathfinderImage& image : images) {
    const auto pixels = static_cast<double>(image.pixels.size());
    double sum = 0;
    for (const uint8_t pixel : image.pixels) sum += pixel;
    const Point apart = image.markers[0] - image.markers[1];
    sums.gray += sum / pixels;
    sums.share_lit += static_cast<double>(std::count_if(image.pixels.begin(), image.pixels.end(),
                                                        [](uint8_t p) { return p > 32; })) /
                      pixels;
    sums.attempts += static_cast<double>(image.num_attempts);
    sums.distractors += image.num_distractors;
    sums.apart += std::hypot(apart.y, apart.x);
    sums.label += image.label;
  }
  const auto count = static_cast<double>(images.size());
  return {.gray = sums.gray / count,
          .share_lit = sums.share_lit / count,
          .attempts = sums.attempts / count,
          .distractors = sums.distractors / count,
          .apart = sums.apart / count,
          .label = sums.label / count};
}

// Means over the samples that the public generator drew (600 hard and 100 easy images of 32, 60 of
// 64, 120 of 128, 20 of 256); the tolerances are four standard errors of the difference.
struct Expected {
  int size, difficulty;
  int64_t count;
  Statistics mean, tolerance;
};

class PathfinderStatistics : public ::testing::TestWithParam<Expected> {};

TEST_P(PathfinderStatistics, AreThoseOfThePublicGenerator) {
  const Expected& expected = GetParam();
  const Statistics found =
      statistics_of(draw_many(expected.size, expected.difficulty, expected.count));
  EXPECT_NEAR(found.gray, expected.mean.gray, expected.tolerance.gray);
  EXPECT_NEAR(found.share_lit, expected.mean.share_lit, expected.tolerance.share_lit);
  EXPECT_NEAR(found.attempts, expected.mean.attempts, expected.tolerance.attempts);
  EXPECT_NEAR(found.distractors, expected.mean.distractors, expected.tolerance.distractors);
  EXPECT_NEAR(found.apart, expected.mean.apart, expected.tolerance.apart);
  EXPECT_NEAR(found.label, 0.5, 2 / std::sqrt(static_cast<double>(expected.count)));
}

constexpr Expected kExpected[] = {
    // Size, difficulty, images; mean and tolerance of the first five members of Statistics.
    {32, 0, 300, {11.9, 0.08405, 25.29, 3.34, 14.59}, {0.73, 0.0055, 12, 0.76, 1.8}},
    {32, 2, 600, {19.98, 0.1506, 328.3, 2.225, 12.99}, {0.55, 0.0042, 76, 0.29, 1.1}},
    {64, 2, 60, {16.15, 0.1371, 4432, 5.367, 30.46}, {1.6, 0.014, 3.2e+03, 1.3, 7}},
    {128, 2, 120, {9.812, 0.07575, 276.1, 15.68, 79.81}, {0.43, 0.0035, 2.9e+02, 0.98, 9.1}},
    {256, 2, 60, {2.333, 0.01567, 7.25, 7, 123.3}, {0.05, 0.0003, 7.5, 0.1, 25}},
};

INSTANTIATE_TEST_SUITE_P(Sizes, PathfinderStatistics, ::testing::ValuesIn(kExpected),
                         [](const auto& info) {
                           return std::to_string(info.param.size) + "_" +
                                  std::to_string(info.param.difficulty);
                         });

TEST(PathfinderGenerator, EveryImageIsAFunctionOfItsNumberAlone) {
  for (const int size : {32, 64, 128, 256}) {
    const PathfinderSettings settings{.size = size, .difficulty = 0};
    const PathfinderGenerator generator(settings, 5);
    const PathfinderImage third = generator.draw(3);
    generator.draw(9);
    EXPECT_EQ(generator.draw(3).pixels, third.pixels);
    EXPECT_EQ(PathfinderGenerator(settings, 5).draw(3).pixels, third.pixels);
    EXPECT_NE(PathfinderGenerator(settings, 6).draw(3).pixels, third.pixels);
    EXPECT_NE(generator.draw(4).pixels, third.pixels);
  }
}

TEST(PathfinderGenerator, TheImageOfANumberNeverChanges) {
  std::string hashes;
  for (const int size : {32, 64, 128, 256}) {
    for (const int difficulty : {0, 1, 2}) {
      const PathfinderImage image =
          PathfinderGenerator({.size = size, .difficulty = difficulty}, 1).draw(0xFFFFFFFF);
      hashes += to_hex(hash64(std::as_bytes(std::span(image.pixels)))) + "\n";
    }
  }
  EXPECT_EQ(hashes,
            "7a9df3c833fba654\n7d9aae79807eede8\n15f80c78cb94a5e6\n1f10cc6a2b9e16eb\n"
            "c02bcfd42b2c4ebb\nde66bbee6ddada5f\n999f1ebabee64c06\n14e9a596d3f329b5\n"
            "55b580ab6ecc165d\nc94bdb8e6f4a53e7\n227886bfbec09139\n8c333fad5654672d\n");
}

// One pixel at least is 255, both discs have their plateau, and most of the image is black.
TEST(PathfinderGenerator, GraysAreThoseOfTheArchive) {
  for (const int size : {32, 64, 128, 256}) {
    for (const PathfinderImage& image : draw_many(size, 1, 20)) {
      EXPECT_EQ(*std::max_element(image.pixels.begin(), image.pixels.end()), 255);
      const auto num_black = std::count(image.pixels.begin(), image.pixels.end(), 0);
      EXPECT_GT(2 * num_black, size * size);
      for (const Point marker : image.markers) {
        EXPECT_GT(image.pixels[static_cast<size_t>(marker.y * size + marker.x)], 190);
      }
    }
  }
}

TEST(PathfinderGenerator, MarginsAreThoseOfTheSize) {
  std::array<int, 4> counts{};
  for (const PathfinderImage& image : draw_many(128, 0, 200)) {
    ++counts.at(static_cast<size_t>(image.margin));
  }
  EXPECT_EQ(counts[0] + counts[1], 0);
  EXPECT_NEAR(counts[2], 100, 30);
  for (const PathfinderImage& image : draw_many(256, 0, 10)) EXPECT_EQ(image.margin, 3);
}

TEST(PathfinderGenerator, RefusesASizeThatWasNeverReleased) {
  EXPECT_NE(error_of([] { PathfinderGenerator({.size = 48}, 0); }), "");
}

}  // namespace
}  // namespace lra::tasks
