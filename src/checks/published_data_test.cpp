#include "checks/published_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_fixtures.h"

namespace lra::checks {
namespace {

using Examples = std::vector<std::pair<int32_t, std::string>>;

class PublishedDataTest : public ::testing::Test {
 protected:
  Dataset data(const std::vector<std::pair<std::string, Examples>>& splits) {
    const std::string folder = root_.path("data" + std::to_string(count_++));
    DatasetWriter writer(folder, imported_manifest("text"), 0);
    for (const auto& [name, examples] : splits) {
      writer.begin_split(name);
      for (const auto& [label, text] : examples) {
        writer.add(label, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
      }
    }
    writer.finish();
    return Dataset::open(folder);
  }
  TestFolder root_;
  int count_ = 0;
};

TEST_F(PublishedDataTest, TheHashDoesNotDependOnOrderOrOnTheHeldOutPart) {
  const auto hash =
      hash_of_examples(data({{"train", {{0, "a"}, {1, "b"}, {1, "c"}}}, {"test", {{0, "d"}}}}));
  EXPECT_EQ(hash,
            hash_of_examples(data(
                {{"train", {{1, "c"}, {0, "a"}}}, {"val", {{1, "b"}}}, {"test", {{0, "d"}}}})));
  EXPECT_EQ(hash.size(), 32U);
}

TEST_F(PublishedDataTest, TheHashSeesLabelsContentsAndTheTest) {
  const auto hash =
      hash_of_examples(data({{"train", {{0, "a"}, {1, "b"}}}, {"test", {{0, "d"}, {1, "e"}}}}));
  for (const auto& [train, test] :
       {std::pair(Examples{{1, "a"}, {0, "b"}}, Examples{{0, "d"}, {1, "e"}}),     // labels
        std::pair(Examples{{0, "A"}, {1, "b"}}, Examples{{0, "d"}, {1, "e"}}),     // a text
        std::pair(Examples{{0, "d"}, {1, "e"}}, Examples{{0, "a"}, {1, "b"}}),     // splits swapped
        std::pair(Examples{{0, "a"}, {1, "e"}}, Examples{{0, "d"}, {1, "b"}})}) {  // and mixed
    EXPECT_NE(hash_of_examples(data({{"train", train}, {"test", test}})), hash);
  }
}

}  // namespace
}  // namespace lra::checks
