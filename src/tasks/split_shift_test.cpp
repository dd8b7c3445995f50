#include "tasks/split_shift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "base/rng.h"
#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::ElementsAre;

TEST(SplitShift, NeedsADistanceAndNumbersThatShowIt) {
  const Spread usual{.mean = 100, .deviation = 10, .count = 5000};
  const auto other = [](double mean, int64_t count) {
    return Spread{.mean = mean, .deviation = 10, .count = count};
  };
  EXPECT_FALSE(is_shifted(usual, other(102.4, 5000))) << "many, and nearly the same";
  EXPECT_TRUE(is_shifted(usual, other(102.6, 5000)));
  EXPECT_TRUE(is_shifted(usual, other(97.4, 5000)));
  EXPECT_FALSE(is_shifted(usual, other(105, 100))) << "five standard errors";
  EXPECT_TRUE(is_shifted(usual, other(107, 100)));
  const auto constant = [](size_t count, double value) {
    return Spread::of(std::vector<double>(count, value));
  };
  EXPECT_FALSE(is_shifted(constant(300, 0.1), constant(1000, 0.1))) << "rounding of a sum";
  EXPECT_TRUE(is_shifted(constant(300, 0.1), constant(1000, 0.11)));
}

TEST(SplitShift, IsTheMeanAndDeviationOverExamples) {
  const Spread spread = Spread::of({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(spread.mean, 5);
  EXPECT_EQ(spread.deviation, 2);
  EXPECT_EQ(spread.count, 8);
  EXPECT_EQ(Spread::of({}).count, 0);
}

// Bytes around 100, in `count` examples of each split; those of the test are changed.
std::vector<std::string> doubts_with(
    int count, const std::function<void(std::vector<uint8_t>& example)>& change,
    const char* task = "image", const char* vocabulary = "257") {
  const TestFolder root;
  Manifest manifest = imported_manifest(task);
  manifest.settings["vocabulary"] = vocabulary;
  manifest.token_offset = task == std::string("image") ? 0 : 1;
  DatasetWriter writer(root.path("data"), manifest, 0);
  RandomStream random(3);
  for (const char* name : {"train", "test"}) {
    writer.begin_split(name);
    for (int i = 0; i < count; ++i) {
      std::vector<uint8_t> example(50 + random.below(20));
      const uint32_t middle = 80 + random.below(40);
      for (uint8_t& byte : example) byte = static_cast<uint8_t>(middle + random.below(20));
      if (name == std::string("test")) change(example);
      writer.add(0, std::span<const uint8_t>(example));
    }
  }
  writer.finish();
  return doubts_of_shift(Dataset::open(root.path("data")));
}

TEST(SplitShift, NamesWhatIsOtherInTheTest) {
  const std::string begin = "examples of test are unlike those of train: ";
  using Bytes = std::vector<uint8_t>;
  const auto unchanged = [](Bytes&) {};
  const auto darken = [](Bytes& e) {
    for (uint8_t& byte : e) byte = static_cast<uint8_t>(byte * 9 / 10);
  };
  const auto cut = [](Bytes& e) { e.resize(45); };
  const auto flatten = [](Bytes& e) {
    for (uint8_t& byte : e) byte = e[0];
  };
  EXPECT_THAT(doubts_with(1000, unchanged), ElementsAre());
  EXPECT_THAT(doubts_with(1000, darken),
              ElementsAre(testing::StartsWith(begin + "mean of the tokens ")));
  EXPECT_THAT(doubts_with(1000, cut),
              ElementsAre(testing::StartsWith(begin + "number of tokens 45.0 on average instead")));
  EXPECT_THAT(doubts_with(1000, flatten),
              ElementsAre(testing::StartsWith(begin + "deviation of the tokens 0.0 ")));
  EXPECT_THAT(doubts_with(199, darken), ElementsAre()) << "too few to tell";
  const auto reorder = [](Bytes& e) { std::ranges::sort(e); };
  EXPECT_THAT(doubts_with(1000, reorder, "custom"),
              ElementsAre(testing::StartsWith(begin + "difference of neighbors ")));
  EXPECT_THAT(doubts_with(1000, reorder, "custom", "258"), ElementsAre()) << "names of words";
  EXPECT_THAT(doubts_with(1000, unchanged, "custom"), ElementsAre());
  const auto brighten = [](Bytes& e) {
    for (uint8_t& byte : e) byte = static_cast<uint8_t>(byte + 5);
  };
  EXPECT_THAT(doubts_with(1000, brighten), testing::SizeIs(1));
  EXPECT_THAT(doubts_with(1000, brighten, "custom"), ElementsAre()) << "another year, perhaps";
  EXPECT_THAT(doubts_with(1000, cut, "custom"),
              ElementsAre(testing::StartsWith(begin + "number of tokens 45.0 on average instead")));
}

// Noise of two channels, the second a tenth of the first, in 300 examples of 40 positions; those of
// the test are changed.
std::vector<std::string> doubts_of_values(const std::function<void(std::vector<float>&)>& change) {
  const TestFolder root;
  Manifest manifest = imported_manifest("custom");
  manifest.token_offset = 0;
  manifest.token_bytes = 8;
  DatasetWriter writer(root.path("data"), manifest, 0);
  RandomStream random(5);
  for (const char* name : {"train", "test"}) {
    writer.begin_split(name);
    for (int i = 0; i < 300; ++i) {
      std::vector<float> values(80);
      for (size_t k = 0; k < values.size(); ++k) {
        values[k] = static_cast<float>(random.below(2001)) / (k % 2 ? 10000 : 1000);
      }
      if (name == std::string("test")) change(values);
      std::vector<uint32_t> words;
      for (const float value : values) words.push_back(std::bit_cast<uint32_t>(value));
      writer.add(0, std::vector<std::span<const uint32_t>>{words});
    }
  }
  writer.finish();
  return doubts_of_shift(Dataset::open(root.path("data")));
}

TEST(SplitShift, NamesValuesWhoseNeighborsDifferOtherwise) {
  EXPECT_THAT(doubts_of_values([](std::vector<float>&) {}), ElementsAre());
  EXPECT_THAT(doubts_of_values([](std::vector<float>& v) {
                for (size_t k = v.size() - 1; k >= 4; --k) v[k] = (v[k] + v[k - 2] + v[k - 4]) / 3;
              }),
              ElementsAre(testing::StartsWith(
                  "examples of test are unlike those of train: difference of neighbors 0.1")));
  EXPECT_THAT(doubts_of_values([](std::vector<float>& v) {
                for (float& value : v) value *= 1.2f;
              }),
              ElementsAre())
      << "another day";
  EXPECT_THAT(doubts_of_values([](std::vector<float>& v) {
                for (float& value : v) value = std::min(value, 0.7f);
              }),
              testing::SizeIs(1));
}

}  // namespace
}  // namespace lra::tasks
