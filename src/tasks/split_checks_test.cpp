#include "tasks/split_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "data/test_fixtures.h"
#include "tasks/task.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

constexpr uint8_t kBlank = 255;  // makes an example one value throughout

// A task of nothing but classes.
class AnyTask : public Task {
 public:
  explicit AnyTask(int64_t num_classes) : num_classes_(num_classes) {}
  TaskShape shape() const override { return {.length = 1, .num_classes = num_classes_}; }
  void import(const std::vector<std::string>&, const std::string&, Progress&) const override {}
  std::vector<std::vector<std::string>> find_copies(const std::string&) const override {
    return {};
  }
  void export_official(const Dataset&, const std::string&) const override {}
  std::vector<checks::Fact> check(const Dataset&) const override { return {}; }
  std::string render(const Split&, int64_t) const override { return ""; }
  std::vector<checks::Baseline> baselines(const Dataset&) const override { return {}; }

 private:
  int64_t num_classes_;
};

Manifest small_manifest(int64_t token_offset = 0, int64_t num_towers = 1) {
  Manifest manifest = imported_manifest("text");
  manifest.token_offset = token_offset;
  manifest.num_towers = num_towers;
  return manifest;
}

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

// The reason why the data is refused, or else its doubts, a line each. An example is `length`
// tokens long.
std::string verdict(const std::vector<Example>& train, const std::vector<Example>& test,
                    size_t length = 2, int64_t num_classes = 2) {
  const TestFolder root;
  DatasetWriter writer(root.path("data"), small_manifest(), 0);
  const auto add = [&](const char* name, const std::vector<Example>& list) {
    writer.begin_split(name);
    for (const Example& e : list) {
      std::vector<uint8_t> tokens(length, kBlank);
      tokens.back() = e.content;
      writer.add(e.label, std::span<const uint8_t>(tokens));
    }
  };
  add("train", train);
  add("test", test);
  writer.finish();
  std::string text;
  const std::string problem = error_of([&] {
    for (const std::string& doubt :
         judge_data(AnyTask(num_classes), Dataset::open(root.path("data")))) {
      text += doubt + "\n";
    }
  });
  return problem.empty() ? text : "REFUSED " + problem;
}

// One in a hundred passes, five in a hundred long ones are refused, as are fifty short ones.
TEST(SplitChecks, WeighCopiesByTheirShareAndLength) {
  EXPECT_EQ(verdict(examples(40, 0), examples(40, 100)), "");
  const auto with_copies = [](size_t count) {
    auto test = examples(100, 100);
    for (size_t i = 0; i < count; ++i) test[i] = examples(100, 0)[i];
    return test;
  };
  const auto train = examples(100, 0);
  EXPECT_EQ(verdict(train, with_copies(1), 100), "");
  const std::string doubt = " of the 100 examples of test are also in an earlier split";
  EXPECT_EQ(verdict(train, with_copies(5), 100), "5" + doubt + "\n");
  EXPECT_THAT(verdict(train, with_copies(6), 100), HasSubstr("6" + doubt));
  EXPECT_THAT(verdict(train, with_copies(6), 100), HasSubstr("REFUSED"));
  EXPECT_EQ(verdict(train, with_copies(50), 99), "50" + doubt + "\n");
  EXPECT_THAT(verdict(train, with_copies(51), 99), HasSubstr("REFUSED"));
}

TEST(SplitChecks, RefuseEqualFilesHoweverSmall) {
  EXPECT_THAT(verdict(examples(4, 0), examples(4, 0)),
              HasSubstr("train repeats examples of test, one by one"));
  EXPECT_EQ(verdict(examples(4, 0), examples(4, 4)), "");
}

TEST(SplitChecks, DoubtExamplesWithTwoLabelsInDifferentSplits) {
  auto test = examples(100, 100);
  for (size_t i = 0; i < 4; ++i) test[i] = {1 - static_cast<int>(i % 2), static_cast<uint8_t>(i)};
  EXPECT_THAT(verdict(examples(100, 0), test),
              HasSubstr("4 of the 100 examples of train occur with two labels"));
}

TEST(SplitChecks, DoubtClassesThatAreMissingOrUneven) {
  std::vector<Example> train, test;
  for (int i = 0; i < 100; ++i) train.push_back({i % 10, static_cast<uint8_t>(i)});
  for (int i = 0; i < 100; ++i) test.push_back({i % 9, static_cast<uint8_t>(100 + i)});
  EXPECT_EQ(verdict(train, test, 2, 10),
            "class 9 has 0 of the 100 examples of test, and its share is 10\n");
  EXPECT_EQ(verdict(train, train, 2, 10).substr(0, 7), "REFUSED");
  std::vector<Example> uneven;
  for (int i = 0; i < 60; ++i) uneven.push_back({i % 12 == 0, static_cast<uint8_t>(i)});
  EXPECT_EQ(verdict(uneven, examples(40, 100)),
            "the classes of train are uneven: 55 examples of one, 5 of another\n");
}

TEST(SplitChecks, RefuseACopyUnderAnotherName) {
  EXPECT_THAT(verdict(examples(40, 0), examples(40, 0)),
              HasSubstr("40 of the 40 examples of test are also in an earlier split"));
}

// A test that is the training split after a tool has cleaned it.
TEST(SplitChecks, RefuseACopyThatWasCleaned) {
  const auto refused = [](const std::function<std::string(const std::string&)>& clean) {
    const TestFolder root;
    DatasetWriter writer(root.path("data"), small_manifest(/*token_offset=*/1), 0);
    for (const bool is_test : {false, true}) {
      writer.begin_split(is_test ? "test" : "train");
      for (int i = 0; i < 40; ++i) {
        const std::string whole = "No. " + std::to_string(i) +
                                  ", caf\xC3\xA9:<br /><br />It's 'Fine'!\x85 <3 " +
                                  std::string(100, 'x');
        const std::string text = is_test ? clean(whole) : whole;
        writer.add(i % 2, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
      }
    }
    writer.finish();
    return error_of([&] { (void)judge_data(AnyTask(2), Dataset::open(root.path("data"))); });
  };
  const auto lower_without = [](const std::string& dropped) {
    return [dropped](std::string text) {
      if (dropped == "<>") {
        for (size_t tag; (tag = text.find("<br />")) != text.npos;) text.replace(tag, 6, " ");
      }
      for (char& c : text) {
        if (dropped.find(c) != dropped.npos) c = ' ';
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      }
      return text;
    };
  };
  const auto copied = HasSubstr("40 of the 40 examples of test are also in an earlier split");
  EXPECT_THAT(refused(lower_without("")), copied);
  EXPECT_THAT(refused(lower_without(".,:!'")), copied);
  EXPECT_THAT(refused(lower_without("<>")), copied);
  EXPECT_EQ(refused([](const std::string& text) { return "another " + text; }), "");
}

TEST(SplitChecks, RefuseAClassThatIsTheOther) {
  std::vector<Example> both;
  for (int i = 0; i < 30; ++i) both.push_back({i % 2, static_cast<uint8_t>(i / 2)});
  EXPECT_THAT(verdict(both, examples(40, 100)), HasSubstr("30 of the 30 examples of train occur"));
}

TEST(SplitChecks, RefuseASplitOfACopiedPart) {
  auto train = examples(10, 0);
  for (const char* doubt : {"", "10 of the 20 examples of train repeat an earlier one\n"}) {
    EXPECT_EQ(verdict(train, examples(40, 100)), doubt);
    for (const Example& e : examples(10, 0)) train.push_back(e);
  }
  EXPECT_THAT(verdict(train, examples(40, 100)),
              HasSubstr("20 of the 30 examples of train repeat an earlier one"));
}

TEST(SplitChecks, RefuseMoreThanAFewThatAreBlank) {
  auto train = examples(200, 0);
  for (size_t i = 0; i < 2; ++i) train[i].content = kBlank;
  EXPECT_THAT(verdict(train, examples(40, 205)),
              HasSubstr("2 of the 200 examples of train are empty\n"));
  train[2].content = kBlank;
  EXPECT_THAT(verdict(train, examples(40, 205)),
              HasSubstr("3 of the 200 examples of train are empty"));
}

TEST(SplitChecks, RefuseATestOfOneClass) {
  std::vector<Example> ones;
  for (int i = 0; i < 30; ++i) ones.push_back({1, static_cast<uint8_t>(100 + i)});
  EXPECT_THAT(verdict(examples(40, 0), ones), HasSubstr("all examples of test have one label"));
  EXPECT_THAT(verdict(ones, examples(40, 0)), HasSubstr("all examples of train have one label"));
}

}  // namespace
}  // namespace lra::tasks
