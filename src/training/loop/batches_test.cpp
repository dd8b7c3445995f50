#include "training/loop/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <map>

#include "base/scratch_folder.h"
#include "training/run/test_runs.h"

namespace lra::training {
namespace {

using ::testing::ElementsAre;

// `count` values that differ from place to place.
std::vector<uint8_t> sequence(size_t count, uint8_t first) {
  std::vector<uint8_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint8_t>(first + 3 * i);
  return values;
}

TaskShape shape_of(int64_t length, int64_t num_towers = 1) {
  return {.length = length, .vocabulary = 257, .num_classes = 4, .num_towers = num_towers};
}

std::vector<int32_t> row(const at::Tensor& tokens_BL, int64_t b) {
  const auto* begin = tokens_BL.const_data_ptr<int32_t>() + b * tokens_BL.size(1);
  return {begin, begin + tokens_BL.size(1)};
}

void expect_same(const Batch& a, const Batch& b) {
  EXPECT_TRUE(at::equal(a.input.tokens_BL, b.input.tokens_BL));
  EXPECT_TRUE(at::equal(a.input.lengths_B, b.input.lengths_B));
  EXPECT_TRUE(at::equal(a.labels_B, b.labels_B));
  EXPECT_EQ(a.num_tokens, b.num_tokens);
}

TEST(Batch, PadsOnTheRightAndKeepsTheOrderAskedFor) {
  const ScratchFolder scratch;
  const auto split =
      write_split(scratch.file("data"), {{2, {{10, 20, 30}}}, {0, {{7}}}, {3, {{1, 2}}}});
  const std::vector<int64_t> indices = {2, 0};
  const Batch batch = make_batch(split, indices, shape_of(5), false);
  EXPECT_EQ(batch.input.tokens_BL.scalar_type(), at::kInt);
  EXPECT_THAT(row(batch.input.tokens_BL, 0), ElementsAre(2, 3, 0, 0, 0));
  EXPECT_THAT(row(batch.input.tokens_BL, 1), ElementsAre(11, 21, 31, 0, 0));
  EXPECT_TRUE(at::equal(batch.input.lengths_B, at::tensor({2, 3}, at::kInt)));
  EXPECT_TRUE(at::equal(batch.labels_B, at::tensor({3, 2}, at::kLong)));
  EXPECT_EQ(batch.num_tokens, 5);
}

TEST(Batch, OfStoredFloatsHasTheirChannels) {
  const ScratchFolder scratch;
  Manifest manifest;
  manifest.task = "custom";
  manifest.source = "imported";
  manifest.token_bytes = 8;
  DatasetWriter writer(scratch.file("data"), manifest, 0);
  writer.begin_split("train");
  const auto add = [&](std::vector<float> values) {
    std::vector<uint32_t> words(values.size());
    std::memcpy(words.data(), values.data(), 4 * values.size());
    const std::vector<std::span<const uint32_t>> sequences = {words};
    writer.add(0, sequences);
  };
  add({0.5f, -1, 2, 3, 4, 5});
  add({-0.25f, 8});
  writer.finish();
  const Split split = Dataset::open(scratch.file("data")).split("train");
  TaskShape shape = shape_of(2);
  shape.values = ValueInput{.channels = 2, .stored_as_float = true};
  const std::vector<int64_t> indices = {0, 1};
  const Batch batch = make_batch(split, indices, shape, false);
  const at::Tensor expected =
      at::tensor({0.5f, -1.0f, 2.0f, 3.0f, -0.25f, 8.0f, 0.0f, 0.0f}).view({2, 2, 2});
  EXPECT_TRUE(at::equal(batch.input.values_BLC, expected));
  EXPECT_TRUE(at::equal(batch.input.lengths_B, at::tensor({2, 1}, at::kInt)));
  EXPECT_EQ(batch.num_tokens, 3);
  const models::ModelInput on_meta = input_shape(split, indices, shape, false);
  EXPECT_EQ(on_meta.values_BLC.sizes(), expected.sizes());
}

TEST(Batch, IsTrimmedToAMultipleOf32ThatDoesNotPassTheTask) {
  const ScratchFolder scratch;
  const auto split = write_split(scratch.file("data"), {{0, {sequence(1, 0)}},
                                                        {0, {sequence(32, 0)}},
                                                        {0, {sequence(33, 0)}},
                                                        {0, {sequence(70, 0)}},
                                                        {0, {{}}}});
  const auto length_of = [&](std::vector<int64_t> indices, bool trim) {
    const Batch batch = make_batch(split, indices, shape_of(80), trim);
    EXPECT_EQ(batch.num_tokens, batch.input.lengths_B.sum().item<int64_t>());
    const models::ModelInput shape = input_shape(split, indices, shape_of(80), trim);
    EXPECT_EQ(shape.tokens_BL.sizes(), batch.input.tokens_BL.sizes());
    EXPECT_TRUE(at::equal(shape.lengths_B, batch.input.lengths_B));
    return batch.input.tokens_BL.size(1);
  };
  EXPECT_EQ(length_of({0}, true), 32);
  EXPECT_EQ(length_of({0, 1}, true), 32);
  EXPECT_EQ(length_of({2, 0}, true), 64);
  EXPECT_EQ(length_of({3, 2}, true), 80) << "96 would be longer than the task";
  EXPECT_EQ(length_of({4}, true), 32) << "no tokens at all still make a batch";
  EXPECT_EQ(length_of({0}, false), 80);
}

TEST(Batch, CutsLongExamplesAtTheTasksLength) {
  const ScratchFolder scratch;
  const auto split = write_split(scratch.file("data"), {{1, {sequence(50, 4)}}, {0, {{9}}}});
  const std::vector<int64_t> indices = {0, 1};
  const Batch batch = make_batch(split, indices, shape_of(6), true);
  EXPECT_THAT(row(batch.input.tokens_BL, 0), ElementsAre(5, 8, 11, 14, 17, 20));
  EXPECT_THAT(row(batch.input.tokens_BL, 1), ElementsAre(10, 0, 0, 0, 0, 0));
  EXPECT_TRUE(at::equal(batch.input.lengths_B, at::tensor({6, 1}, at::kInt)));
}

TEST(Batch, PutsTheTowersOfAnExampleSideBySide) {
  const ScratchFolder scratch;
  const auto split = write_split(scratch.file("data"), {{1, {{1, 2}, {3}}}, {0, {{4}, {5, 6, 7}}}});
  const std::vector<int64_t> indices = {1, 0};
  const Batch batch = make_batch(split, indices, shape_of(3, 2), true);
  ASSERT_EQ(batch.input.tokens_BL.size(0), 4);
  EXPECT_THAT(row(batch.input.tokens_BL, 0), ElementsAre(5, 0, 0));
  EXPECT_THAT(row(batch.input.tokens_BL, 1), ElementsAre(6, 7, 8));
  EXPECT_THAT(row(batch.input.tokens_BL, 2), ElementsAre(2, 3, 0));
  EXPECT_THAT(row(batch.input.tokens_BL, 3), ElementsAre(4, 0, 0));
  EXPECT_TRUE(at::equal(batch.input.lengths_B, at::tensor({1, 3, 2, 1}, at::kInt)));
  EXPECT_TRUE(at::equal(batch.labels_B, at::tensor({0, 1}, at::kLong)));
  EXPECT_EQ(batch.num_tokens, 7);
}

TEST(Batch, HasNoLengthsWhenTheTaskHasNoPadding) {
  const ScratchFolder scratch;
  const auto split = write_split(scratch.file("data"), {{1, {sequence(4, 0)}}});
  TaskShape shape = shape_of(4);
  shape.has_padding = false;
  const std::vector<int64_t> indices = {0};
  EXPECT_FALSE(make_batch(split, indices, shape, true).input.lengths_B.defined());
}

class Loader : public ::testing::Test {
 protected:
  static constexpr int64_t kExamples = 37, kBatch = 5;

  Loader() {
    std::vector<TestExample> examples;
    for (size_t i = 0; i < kExamples; ++i) {
      examples.push_back(
          {static_cast<int32_t>(i % 4), {sequence(1 + 7 * i % 60, static_cast<uint8_t>(i))}});
    }
    split_ = write_split(scratch_.file("data"), examples);
  }

  ScratchFolder scratch_;
  Split split_;
  const TaskShape shape_ = shape_of(50);
};

TEST_F(Loader, GivesTheSameStreamWithAnyPrefetchAndThreadsAndFromAnyStep) {
  const BatchOrder order(kExamples, kBatch, 11);
  for (const int64_t first_step : {0, 6}) {
    for (const auto& [prefetch, threads] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 1}, {4, 1}, {4, 4}, {8, 3}}) {
      SCOPED_TRACE(std::to_string(first_step) + " with prefetch " + std::to_string(prefetch) +
                   ", " + std::to_string(threads) + " threads");
      BatchLoader loader(split_, shape_, order, first_step,
                         {.prefetch = prefetch, .threads = threads});
      for (int64_t step = first_step; step < first_step + 12; ++step) {
        std::vector<int64_t> indices(kBatch);
        order.fill(step, indices);
        const std::vector<Batch> parts = loader.next();
        ASSERT_EQ(parts.size(), 1u);
        expect_same(parts[0], make_batch(split_, indices, shape_, true));
      }
    }
  }
}

TEST_F(Loader, CutsAStepIntoPartsOfNearlyOneSize) {
  const BatchOrder order(kExamples, kBatch, 11);
  std::vector<int64_t> indices(kBatch);
  order.fill(2, indices);
  for (const auto& [num_parts, sizes] :
       std::map<int64_t, std::vector<size_t>>{{2, {2, 3}}, {3, {1, 2, 2}}, {5, {1, 1, 1, 1, 1}}}) {
    SCOPED_TRACE(num_parts);
    BatchLoader loader(split_, shape_, order, 2,
                       {.prefetch = 1, .parts = {.count = num_parts, .of = num_parts}});
    const std::vector<Batch> parts = loader.next();
    ASSERT_EQ(parts.size(), sizes.size());
    size_t begin = 0;
    for (size_t i = 0; i < sizes.size(); begin += sizes[i], ++i) {
      const auto expected =
          make_batch(split_, std::span(indices).subspan(begin, sizes[i]), shape_, true);
      expect_same(parts[i], expected);
    }
  }
}

TEST_F(Loader, HandsAnExceptionOfTheWorkerToNext) {
  // An order over more examples than there are runs past the end sooner or later.
  const BatchOrder order(2 * kExamples, kBatch, 11);
  for (const int64_t prefetch : {0, 1, 4}) {
    BatchLoader loader(split_, shape_, order, 0, {.prefetch = prefetch, .threads = 2});
    const auto drain = [&] {
      for (int step = 0; step < 2 * kExamples; ++step) (void)loader.next();
    };
    EXPECT_THROW(drain(), CheckFailure) << prefetch;
    if (prefetch == 0) continue;
    EXPECT_THROW((void)loader.next(), CheckFailure) << "once more";
  }
}

TEST_F(Loader, IsDestroyedWhileItsWorkerWaitsForRoom) {
  auto destroyed = std::async(std::launch::async, [&] {
    const BatchLoader loader(split_, shape_, BatchOrder(kExamples, kBatch, 1), 0,
                             {.prefetch = 2, .threads = 2});
    // Time enough to prepare two tiny batches; then the worker waits.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  ASSERT_EQ(destroyed.wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

}  // namespace
}  // namespace lra::training
