#include "checks/baseline.h"

#include <gtest/gtest.h>

#include "checks/test_data.h"

namespace lra::checks {
namespace {

struct Pixel {
  float brightness;
  int32_t label;
};

// Accuracy on `test` of the threshold learned from `train`, images of one pixel.
double accuracy(const std::vector<Pixel>& train, const std::vector<Pixel>& test) {
  const TestFolder root;
  TestSplits splits;
  for (const auto& [name, pixels] : {std::pair("train", train), std::pair("test", test)}) {
    for (const auto& [brightness, label] : pixels) {
      splits[name].push_back({.numbers = {brightness}, .label = label});
    }
  }
  const Dataset dataset = write_examples(root, splits, InputKind::kPixels);
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
