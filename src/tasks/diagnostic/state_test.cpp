#include "tasks/diagnostic/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "data/test_fixtures.h"
#include "io/toml.h"
#include "tasks/all.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Task> state_task(const std::string& toml) {
  return kStateTask.make(parse_toml(toml, "test"));
}

std::vector<int32_t> answers(const Task& task, const std::vector<int32_t>& tokens) {
  std::vector<int32_t> labels;
  for (const PlaceLabel& answer : task.place_labels(tokens)) {
    EXPECT_EQ(answer.place, static_cast<int64_t>(labels.size()));
    labels.push_back(answer.label);
  }
  return labels;
}

TEST(State, ProductsAreThoseOfGroups) {
  const std::map<std::string_view, size_t> sizes = {
      {"parity", 2}, {"s3", 6}, {"s5", 120}, {"z60", 60}};
  for (const auto& [group, size] : sizes) {
    SCOPED_TRACE(group);
    const auto product = products_of(group);
    ASSERT_EQ(product.size(), size);
    const auto of = [&](size_t a, size_t b) { return static_cast<size_t>(product.at(a).at(b)); };
    bool commutes = true;
    for (size_t a = 0; a < product.size(); ++a) {
      EXPECT_EQ(of(a, 0), a);
      EXPECT_EQ(of(0, a), a);
      EXPECT_EQ(std::set<int32_t>(product[a].begin(), product[a].end()).size(), product.size());
      for (size_t b = 0; b < product.size(); ++b) {
        commutes = commutes && of(a, b) == of(b, a);
        for (size_t c = 0; c < product.size(); c += 7) {
          EXPECT_EQ(of(of(a, b), c), of(a, of(b, c)));
        }
      }
    }
    EXPECT_EQ(commutes, group == "parity" || group == "z60");
  }
}

// 021 and then 102 maps 0, 1, 2 to 1, 2, 0: permutation 3 of 012, 021, 102, 120, 201, 210.
TEST(State, MultipliesFromLeftToRight) {
  EXPECT_EQ(products_of("s3")[1][2], 3);
  EXPECT_EQ(products_of("s3")[2][1], 4);
  EXPECT_EQ(answers(*state_task("group = 's3'"), {2, 3}), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(answers(*state_task("group = 's3'"), {3, 2}), (std::vector<int32_t>{2, 4}));
}

TEST(State, ParityIsThatOfTheOnesSoFar) {
  EXPECT_EQ(answers(*state_task("group = 'parity'"), {1, 2, 2, 2, 1}),
            (std::vector<int32_t>{0, 1, 0, 1, 1}));
}

TEST(State, DrawsAllLengths) {
  const TestFolder root;
  QuietProgress progress;
  const auto task = state_task("length = 9\nmin_length = 5");
  task->make({.out = root.path("data"), .seed = 3, .num_train = 200, .num_val = 1, .num_test = 1},
             progress);
  const Dataset dataset = Dataset::open(root.path("data"));
  const Split train = dataset.split("train");
  std::set<int64_t> lengths;
  for (int64_t i = 0; i < train.size(); ++i) lengths.insert(train.sequence_length(i, 0));
  EXPECT_EQ(lengths, (std::set<int64_t>{5, 6, 7, 8, 9}));
  EXPECT_THAT(error_of([] { state_task("length = 4\nmin_length = 5"); }),
              HasSubstr("at most task.length"));
}

}  // namespace
}  // namespace lra::tasks
