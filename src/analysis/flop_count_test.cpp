#include "analysis/flop_count.h"

#include <gtest/gtest.h>

#include "mixers/all.h"
#include "training/run/make_model.h"
#include "training/run/test_runs.h"

namespace lra::analysis {
namespace {

// Sizes of training::tiny_run().
constexpr int64_t kCountedLength = 40, kWidth = 16, kHidden = 16, kHeads = 2, kHead = 8,
                  kClasses = 10;

// FLOPs of every model outside its mixer: feed-forward block and classifier.
constexpr int64_t kRest =
    2 * (2 * kCountedLength * kWidth * kHidden) + 2 * kWidth * kHidden + 2 * kHidden * kClasses;
// Queries, keys, values and output.
constexpr int64_t kProjections = 4 * (2 * kCountedLength * kWidth * kWidth);

int64_t count(const std::string& model, const std::vector<std::string>& sets, int64_t batch) {
  const training::RunConfig run = training::tiny_run(sets, model);
  const TaskShape shape = run.make_task()->shape();
  const models::SequenceClassifier classifier = training::make_model(run, shape);
  return forward_flops(classifier, {at::ones({batch, shape.length}, at::kInt), {}});
}

TEST(FlopCount, IsTheClosedFormOfTheMixer) {
  const training::OneThread one_thread;
  EXPECT_EQ(count("transformer", {}, 1),
            kRest + kProjections + 4 * kHeads * kCountedLength * kCountedLength * kHead);
  EXPECT_EQ(count("local", {"mixer.block=10"}, 1),
            kRest + kProjections + 4 * kHeads * kCountedLength * 10 * kHead);
  // Keys and values each times P, and attention to five rows.
  EXPECT_EQ(count("linformer", {"mixer.rank=5"}, 1), kRest + kProjections +
                                                         2 * (2 * kCountedLength * 5 * kWidth) +
                                                         4 * kHeads * kCountedLength * 5 * kHead);
  // The summary of keys and values, its product with the queries, and the normalizer.
  EXPECT_EQ(count("linear_transformer", {}, 1),
            kRest + kProjections + kHeads * kCountedLength * (4 * kHead * kHead + 2 * kHead));
}

TEST(FlopCount, GrowsWithTheBatchInEveryModel) {
  const training::OneThread one_thread;
  for (const std::string& model : mixers::mixer_names()) {
    const int64_t one = count(model, {}, 1);
    // The blocks of ChordMixer have no feed-forward layer besides its own.
    EXPECT_GT(one, model == "chordmixer" ? 0 : kRest) << model;
    // Reformer's pairs depend on where the random hash puts the rows of an example; the powers of
    // the linear RNN's matrix are made once for a batch.
    if (model != "reformer" && model != "linear_rnn") {
      EXPECT_EQ(count(model, {}, 3), 3 * one) << model;
    }
  }
}

// Counting leaves nothing behind that would count, or slow, what follows.
TEST(FlopCount, SameAgain) {
  const training::OneThread one_thread;
  EXPECT_EQ(count("bigbird", {}, 2), count("bigbird", {}, 2));
}

}  // namespace
}  // namespace lra::analysis
