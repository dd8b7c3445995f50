#include "tasks/split_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

constexpr uint8_t kBlank = 255;  // makes an example one value throughout

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
      const std::vector<uint8_t> tokens = {kBlank, e.content};
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

TEST(SplitChecks, RefuseASplitOfACopiedPart) {
  auto train = examples(10, 0);
  for (const int times : {1, 2}) {
    EXPECT_EQ(refusal(train, examples(40, 100)), "") << times;
    for (const Example& e : examples(10, 0)) train.push_back(e);
  }
  EXPECT_THAT(refusal(train, examples(40, 100)),
              HasSubstr("20 of the 30 examples of train repeat an earlier one"));
}

TEST(SplitChecks, RefuseMoreThanAFewThatAreBlank) {
  auto train = examples(200, 0);
  for (size_t i = 0; i < 2; ++i) train[i].content = kBlank;
  EXPECT_EQ(refusal(train, examples(40, 205)), "") << "one in a hundred";
  train[2].content = kBlank;
  EXPECT_THAT(refusal(train, examples(40, 205)),
              HasSubstr("3 of the 200 examples of train are empty"));
}

TEST(SplitChecks, RefuseTextsOfOneClassOrSplitThatAreWrittenAnotherWay) {
  const auto problem = [](const std::string& odd_split, int32_t odd_label, const std::string& end) {
    const TestFolder root;
    Manifest manifest;
    manifest.task = "text";
    manifest.source = "imported";
    manifest.source_hash = "none";
    manifest.token_offset = 1;
    DatasetWriter writer(root.path("data"), manifest, 0);
    for (const std::string split : {"train", "test"}) {
      writer.begin_split(split);
      for (int32_t i = 0; i < 40; ++i) {
        std::string text = split + std::to_string(i);
        if ((odd_split.empty() || split == odd_split) && (odd_label < 0 || i % 2 == odd_label)) {
          text = end == "tab" ? "a\t" + text : end == "front" ? " " + text : text + end;
        }
        writer.add(i % 2, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
      }
    }
    writer.finish();
    return error_of([&] { refuse_impossible_splits(Dataset::open(root.path("data"))); });
  };
  EXPECT_THAT(problem("", 0, "\n"), HasSubstr("texts that end in white space: 100.00% of class 0"));
  EXPECT_THAT(problem("test", -1, " "), HasSubstr("texts that end in white space"));
  EXPECT_THAT(problem("", 1, "\nmore"),
              HasSubstr("texts that hold a line end: 100.00% of class 1"));
  EXPECT_THAT(problem("", 1, "front"), HasSubstr("texts that begin with white space"));
  EXPECT_THAT(problem("train", 1, "tab"), HasSubstr("texts that hold a tab"));
  EXPECT_EQ(problem("", -1, "\n"), "") << "all alike";
  EXPECT_EQ(problem("", 0, "x"), "") << "not a matter of how it is written";
}

TEST(SplitChecks, CountBlankTextsAndPictures) {
  const TestFolder root;
  const auto count = [&](int64_t token_offset, const std::vector<std::string>& contents) {
    std::filesystem::remove_all(root.path("data"));
    Manifest manifest;
    manifest.task = "text";
    manifest.source = "imported";
    manifest.source_hash = "none";
    manifest.token_offset = token_offset;
    DatasetWriter writer(root.path("data"), manifest, 0);
    writer.begin_split("train");
    for (const std::string& text : contents) {
      writer.add(0, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
    }
    writer.finish();
    const Dataset dataset = Dataset::open(root.path("data"));
    return count_blank(dataset.split("train"), dataset.manifest());
  };
  EXPECT_EQ(count(1, {"", " \t\r\n", "x", " x ", "xx", "\n"}), 3);
  EXPECT_EQ(count(0, {"xx", "xy", "x"}), 1) << "a symbol alone may be an example";
}

TEST(SplitChecks, RefuseATestOfOneClass) {
  std::vector<Example> ones;
  for (int i = 0; i < 30; ++i) ones.push_back({1, static_cast<uint8_t>(100 + i)});
  EXPECT_THAT(refusal(examples(40, 0), ones), HasSubstr("all examples of test have one label"));
  EXPECT_THAT(refusal(ones, examples(40, 0)), HasSubstr("all examples of train have one label"));
}

}  // namespace
}  // namespace lra::tasks
