#include "tasks/data_doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::ElementsAre;

// A split of `size` examples: only their number counts here.
Split split_of(const TestFolder& root, int64_t size) {
  const std::string folder = root.path(std::to_string(size));
  Manifest manifest;
  manifest.task = "text";
  manifest.source = "generated";
  DatasetWriter writer(folder, manifest, 0);
  writer.begin_split("train");
  const std::vector<uint8_t> token = {1};
  for (int64_t i = 0; i < size; ++i) writer.add(0, std::span<const uint8_t>(token));
  writer.finish();
  return Dataset::open(folder).split("train");
}

TEST(DataDoubts, NameBaselinesThatAreRightMoreOftenThanTheCommonestClassExplains) {
  const auto doubts = [](double majority, double words) {
    return doubts_of_baselines(
        {{.name = "majority", .accuracy = majority}, {.name = "words", .accuracy = words}}, 2,
        1000);
  };
  EXPECT_THAT(doubts(0.5, 0.95),
              ElementsAre(testing::HasSubstr("'words' alone is right on 95.00%")));
  EXPECT_THAT(doubts(0.94, 0.95), ElementsAre());
  EXPECT_THAT(doubts(0.94, 0.995), testing::SizeIs(1));
  EXPECT_THAT(doubts(0.5, 0.8), ElementsAre());
}

TEST(DataDoubts, NameLabelsOfWhichABaselineLearnsLessThanOfPublishedOnes) {
  const TestFolder root;
  const Split train = split_of(root, 5000), test = split_of(root, 1000), few = split_of(root, 999);
  const auto doubts = [&](double accuracy, const Split& of_train, const Split& of_test) {
    return doubts_of_labels(
        {.found = {.name = "bytes", .accuracy = accuracy}, .published = 0.64, .least = 0.6},
        of_train, of_test);
  };
  EXPECT_THAT(doubts(0.5, train, test),
              ElementsAre("the baseline 'bytes' is right on 50.00% of the test, on published data "
                          "on 64%: are labels shuffled, or partly wrong?"));
  EXPECT_THAT(doubts(0.568, train, test), testing::SizeIs(1));
  EXPECT_THAT(doubts(0.57, train, test), ElementsAre()) << "within two standard errors";
  EXPECT_THAT(doubts(0.5, train, few), ElementsAre()) << "too few to tell";
  EXPECT_THAT(doubts(0.5, few, test), ElementsAre()) << "too few to learn from";
}

}  // namespace
}  // namespace lra::tasks
