#include "checks/baseline.h"

#include <gtest/gtest.h>

#include "data/test_fixtures.h"

namespace lra::checks {
namespace {

struct Pixel {
  uint8_t brightness;
  int32_t label;
};

// Accuracy on `test` of the threshold learned from `train`, images of one pixel.
double accuracy(const std::vector<Pixel>& train, const std::vector<Pixel>& test) {
  const TestFolder root;
  Manifest manifest;
  manifest.task = "made-for-a-test";
  manifest.source = "generated";
  manifest.num_towers = 1;
  DatasetWriter writer(root.path("data"), manifest, 0);
  for (const auto& [name, pixels] : {std::pair("train", train), std::pair("test", test)}) {
    writer.begin_split(name);
    for (const Pixel& pixel : pixels) writer.add(pixel.label, std::vector{pixel.brightness});
  }
  writer.finish();
  const Dataset dataset = Dataset::open(root.path("data"));
  return brightness_baseline(dataset.split("train"), dataset.split("test")).accuracy;
}

TEST(BrightnessBaseline, TakesTheBestThresholdInEitherDirection) {
  const std::vector<Pixel> dark_first = {{1, 0}, {2, 0}, {3, 1}, {9, 1}};
  EXPECT_EQ(accuracy(dark_first, {{0, 0}, {2, 0}, {3, 1}, {200, 1}}), 1);
  EXPECT_EQ(accuracy({{1, 1}, {2, 1}, {3, 0}, {9, 0}}, {{0, 1}, {2, 1}, {3, 0}, {200, 0}}), 1);
  EXPECT_EQ(accuracy({{5, 1}, {5, 1}}, {{0, 1}, {200, 1}, {7, 0}, {9, 1}}), 0.75);
}

// No threshold parts equal images: three of 5 are best called 1, and 1 one class.
TEST(BrightnessBaseline, KeepsEqualImagesTogether) {
  const std::vector<Pixel> train = {{1, 1}, {5, 0}, {5, 0}, {5, 1}, {5, 1}, {5, 1}};
  EXPECT_EQ(accuracy(train, train), 4.0 / 6);
}

}  // namespace
}  // namespace lra::checks
