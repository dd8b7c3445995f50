#include "data/batch_order.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace lra {
namespace {

std::vector<int64_t> positions(int64_t num_examples, int64_t batch, uint64_t seed, int64_t steps) {
  const BatchOrder order(num_examples, batch, seed);
  std::vector<int64_t> all;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<int64_t> indices(static_cast<size_t>(batch));
    order.fill(step, indices);
    all.insert(all.end(), indices.begin(), indices.end());
  }
  return all;
}

TEST(BatchOrder, EveryEpochHoldsEveryExampleOnce) {
  const std::vector<int64_t> all = positions(10, 4, 1, 15);  // six epochs
  std::vector<std::vector<int64_t>> epochs;
  for (size_t epoch = 0; epoch < 6; ++epoch) {
    const auto begin = all.begin() + static_cast<int64_t>(epoch) * 10;
    epochs.emplace_back(begin, begin + 10);
    EXPECT_EQ(std::set<int64_t>(epochs.back().begin(), epochs.back().end()).size(), 10U);
    EXPECT_GE(*std::min_element(begin, begin + 10), 0);
    EXPECT_LT(*std::max_element(begin, begin + 10), 10);
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST(BatchOrder, TheOrderOfExamplesDoesNotDependOnTheBatchSize) {
  EXPECT_EQ(positions(7, 1, 3, 42), positions(7, 6, 3, 7));
  EXPECT_EQ(positions(7, 21, 3, 2), positions(7, 6, 3, 7));  // several epochs in one batch
}

TEST(BatchOrder, AStepCanBeEnteredWithoutTheOnesBefore) {
  const std::vector<int64_t> all = positions(1000, 32, 9, 100);
  std::vector<int64_t> indices(32);
  BatchOrder(1000, 32, 9).fill(77, indices);
  EXPECT_EQ(indices, std::vector<int64_t>(all.begin() + 77 * 32, all.begin() + 78 * 32));
}

TEST(BatchOrder, SeedsGiveDifferentOrders) {
  EXPECT_NE(positions(1000, 32, 1, 3), positions(1000, 32, 2, 3));
  EXPECT_EQ(positions(1, 3, 1, 2), std::vector<int64_t>(6, 0));
}

TEST(BatchOrder, WrongSizesAreOurMistake) {
  std::vector<int64_t> indices(3);
  EXPECT_THROW(BatchOrder(0, 1, 1), CheckFailure);
  EXPECT_THROW(BatchOrder(1, 0, 1), CheckFailure);
  EXPECT_THROW(BatchOrder(5, 2, 1).fill(0, indices), CheckFailure);
}

}  // namespace
}  // namespace lra
