#include "tasks/split_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

struct Example {
  int32_t label;
  uint8_t content;
};

// `count` examples of two labels, told apart by their content.
std::vector<Example> examples(int count, uint8_t first) {
  std::vector<Example> list;
  for (int i = 0; i < count; ++i) list.push_back({i % 2, static_cast<uint8_t>(first + i)});
  return list;
}

std::string refusal(const std::vector<Example>& train, const std::vector<Example>& test) {
  const TestFolder root;
  Manifest manifest;
  manifest.task = "text";
  manifest.source = "imported";
  manifest.source_hash = "none";
  DatasetWriter writer(root.path("data"), manifest, 0);
  const auto add = [&](const char* name, const std::vector<Example>& list) {
    writer.begin_split(name);
    for (const Example& e : list) {
      const std::vector<uint8_t> tokens = {1, e.content};
      writer.add(e.label, std::span<const uint8_t>(tokens));
    }
  };
  add("train", train);
  add("test", test);
  writer.finish();
  return error_of([&] { refuse_impossible_splits(Dataset::open(root.path("data"))); });
}

TEST(SplitChecks, LetRealDataPass) {
  auto test = examples(40, 100);
  for (size_t i = 0; i < 20; ++i) test[i] = examples(40, 0)[i];  // half of it, not more
  EXPECT_EQ(refusal(examples(40, 0), test), "");
  EXPECT_EQ(refusal(examples(4, 0), examples(4, 0)), "") << "too few to judge";
}

TEST(SplitChecks, RefuseACopyUnderAnotherName) {
  EXPECT_THAT(refusal(examples(40, 0), examples(40, 0)),
              HasSubstr("40 of the 40 examples of test are also in an earlier split"));
}

TEST(SplitChecks, RefuseAClassThatIsTheOther) {
  std::vector<Example> both;
  for (int i = 0; i < 30; ++i) both.push_back({i % 2, static_cast<uint8_t>(i / 2)});
  EXPECT_THAT(refusal(both, examples(40, 100)), HasSubstr("30 of the 30 examples of train occur"));
}

TEST(SplitChecks, RefuseATestOfOneClass) {
  std::vector<Example> ones;
  for (int i = 0; i < 30; ++i) ones.push_back({1, static_cast<uint8_t>(100 + i)});
  EXPECT_THAT(refusal(examples(40, 0), ones), HasSubstr("all examples of test have one label"));
  EXPECT_THAT(refusal(ones, examples(40, 0)), HasSubstr("all examples of train have one label"));
}

}  // namespace
}  // namespace lra::tasks
