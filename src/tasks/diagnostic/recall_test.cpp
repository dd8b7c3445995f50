#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "data/test_fixtures.h"
#include "io/toml.h"
#include "tasks/all.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kEmpty = 1;

std::unique_ptr<Task> recall_task(const std::string& toml) {
  return kRecallTask.make(parse_toml(toml, "test"));
}

// The examples of the training split, of `count`.
std::vector<std::vector<int32_t>> drawn(const Task& task, int64_t count) {
  const TestFolder root;
  QuietProgress progress;
  task.make({.out = root.path("data"), .seed = 3, .num_train = count, .num_val = 1, .num_test = 1},
            progress);
  const Dataset dataset = Dataset::open(root.path("data"));
  const Split train = dataset.split("train");
  std::vector<std::vector<int32_t>> examples;
  for (int64_t i = 0; i < train.size(); ++i) {
    std::vector<int32_t>& tokens = examples.emplace_back(train.sequence_length(i, 0));
    train.read_tokens(i, 0, tokens);
  }
  return examples;
}

TEST(Recall, AsksForEachKeyOnceAndDoesNotWriteTheAnswer) {
  constexpr size_t kPairs = 3, kLength = 20;
  constexpr int32_t kFirstValue = kEmpty + 16;
  const auto task = recall_task("length = 20\npairs = 3\nvocabulary = 32");
  for (const auto& tokens : drawn(*task, 200)) {
    ASSERT_EQ(tokens.size(), kLength);
    std::map<int32_t, int32_t> value_of;
    std::set<int32_t> values;
    for (size_t i = 0; i < 2 * kPairs; i += 2) {
      EXPECT_GT(tokens[i], kEmpty);
      EXPECT_LT(tokens[i], kFirstValue);
      EXPECT_GE(tokens[i + 1], kFirstValue);
      EXPECT_LE(tokens[i + 1], 32);
      value_of[tokens[i]] = tokens[i + 1];
      values.insert(tokens[i + 1]);
    }
    EXPECT_EQ(value_of.size(), kPairs);
    EXPECT_EQ(values.size(), kPairs);
    std::vector<std::pair<int64_t, int32_t>> wanted, found;
    for (size_t i = 2 * kPairs; i < kLength; ++i) {
      if (tokens[i] == kEmpty) continue;
      EXPECT_EQ(i % 2, 0U);
      wanted.emplace_back(i, value_of.at(tokens[i]) - kFirstValue);
    }
    EXPECT_EQ(wanted.size(), kPairs);
    for (const PlaceLabel& answer : task->place_labels(tokens)) {
      found.emplace_back(answer.place, answer.label);
    }
    EXPECT_EQ(found, wanted);
  }
}

// How often slot g of `slots` is taken by the one key.
std::vector<double> shares_of_slots(const std::string& power, size_t slots) {
  constexpr int64_t kExamples = 20000;
  std::vector<double> shares(slots);
  for (const auto& tokens :
       drawn(*recall_task("length = 12\npairs = 1\nvocabulary = 2048\npower = " + power),
             kExamples)) {
    for (size_t g = 0; g < slots; ++g) shares[g] += (tokens[2 + 2 * g] != kEmpty) / 2e4;
  }
  return shares;
}

TEST(Recall, ComesAgainSoonByAPowerLaw) {
  constexpr size_t kSlots = 5;
  for (const double power : {0.01, 0.5, 1.0}) {
    const std::vector<double> shares = shares_of_slots(std::to_string(power), kSlots);
    double total = 0;
    for (size_t g = 1; g <= kSlots; ++g) total += std::pow(g, power - 1);
    for (size_t g = 1; g <= kSlots; ++g) {
      EXPECT_NEAR(shares[g - 1], std::pow(g, power - 1) / total, 0.015) << power << ", slot " << g;
    }
  }
}

TEST(Recall, AnyValueOfTheSequenceIsABaseline) {
  const TestFolder root;
  QuietProgress progress;
  const auto task = recall_task("length = 64\npairs = 4");
  task->make({.out = root.path("data"), .seed = 1, .num_train = 50, .num_val = 1, .num_test = 50},
             progress);
  const auto baselines = task->baselines(Dataset::open(root.path("data")));
  EXPECT_EQ(baselines.back().name, "any value of the sequence");
  EXPECT_EQ(baselines.back().accuracy, 0.25);
}

TEST(Recall, ReadsShorterSequencesOfItsSettings) {
  const TestFolder root;
  QuietProgress progress;
  recall_task("length = 16\npairs = 2")
      ->make({.out = root.path("data"), .seed = 1, .num_train = 9, .num_val = 1, .num_test = 1},
             progress);
  const auto open = [&](const char* settings) {
    return error_of(
        [&] { recall_task(settings)->refuse_other_settings(Dataset::open(root.path("data"))); });
  };
  EXPECT_EQ(open("length = 32\npairs = 2"), "");
  EXPECT_THAT(open("length = 14\npairs = 2"), HasSubstr("was made with length '16'"));
  EXPECT_THAT(open("length = 32\npairs = 3"), HasSubstr("was made with pairs '2'"));
}

TEST(Recall, RefusesWhatHasNoExamples) {
  EXPECT_THAT(error_of([] { recall_task("length = 16\npairs = 5"); }), HasSubstr("task.pairs"));
  EXPECT_THAT(error_of([] { recall_task("length = 15"); }), HasSubstr("an even number"));
  EXPECT_THAT(error_of([] { recall_task("pairs = 4\nvocabulary = 8"); }),
              HasSubstr("as many as there are keys"));
  EXPECT_THAT(error_of([] { drawn(*recall_task("length = 4\npairs = 1\nvocabulary = 4"), 10); }),
              HasSubstr("fewer different examples"));
}

}  // namespace
}  // namespace lra::tasks
