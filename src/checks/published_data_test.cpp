#include "checks/published_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checks/test_data.h"

namespace lra::checks {
namespace {

using Examples = std::vector<std::pair<int32_t, std::string>>;

class PublishedDataTest : public ::testing::Test {
 protected:
  Dataset data(const std::vector<std::pair<std::string, Examples>>& splits) {
    TestSplits written;
    for (const auto& [name, examples] : splits) {
      for (const auto& [label, text] : examples) {
        written[name].push_back({.text = text, .label = label});
      }
    }
    return write_examples(root_, written, InputKind::kText);
  }
  TestFolder root_;
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
