#include "training/loop/evaluate.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/scratch_folder.h"
#include "base/stop_flag.h"
#include "models/classifier.h"
#include "training/run/test_runs.h"

namespace lra::training {
namespace {

constexpr int64_t kExamples = 53, kClasses = 4;

class EvaluateSplit : public ::testing::Test {
 protected:
  EvaluateSplit() {
    // Sorted by label, as files often are; lengths vary so that batches are trimmed differently.
    std::vector<TestExample> examples;
    for (int64_t i = 0; i < kExamples; ++i) {
      std::vector<uint8_t> tokens(static_cast<size_t>(1 + 11 * i % 90));
      for (size_t k = 0; k < tokens.size(); ++k)
        tokens[k] = static_cast<uint8_t>((i * 5 + static_cast<int64_t>(k * k)) % 15);
      examples.push_back({static_cast<int32_t>(i * kClasses / kExamples), {tokens}});
    }
    split_ = write_split(scratch_.file("data"), examples);
  }
  EvaluationResult result_of(int64_t batch_size, int64_t limit = 0) const {
    return evaluate(model_, split_, shape_, batch_size, limit, {});
  }

  OneThread one_thread_;
  ScratchFolder scratch_;
  Split split_;
  const TaskShape shape_{.length = 80, .vocabulary = 16, .num_classes = kClasses};
  const RunConfig run_ = tiny_run({"model.pooling=cls", "model.dropout=0.5"});
  const models::SequenceClassifier model_{shape_, run_.model_config, run_.mixer_spec(),
                                          run_.mixer_settings, 1};
};

// Notes how many positions each batch has.
class NotedLengths : public models::Model {
 public:
  at::Tensor forward(const models::ModelInput& input, const models::StepRandom&) const override {
    noted.push_back(input.length());
    return at::zeros({input.rows(), kClasses});
  }
  at::Device device() const override { return at::kCPU; }

  mutable std::vector<int64_t> noted;
};

int64_t sum_of(const std::vector<std::vector<int64_t>>& confusion) {
  int64_t sum = 0;
  for (const auto& row : confusion) {
    for (const int64_t count : row) sum += count;
  }
  return sum;
}

TEST_F(EvaluateSplit, CountsEveryExampleOnce) {
  std::vector<int64_t> of_label(kClasses);
  for (int64_t i = 0; i < kExamples; ++i) ++of_label[static_cast<size_t>(split_.label(i))];
  std::vector<int64_t> told;
  const auto result =
      evaluate(model_, split_, shape_, 20, 0, [&](int64_t count) { told.push_back(count); });
  EXPECT_EQ(told, (std::vector<int64_t>{20, 20, 13}));
  EXPECT_EQ(result.summary.num_examples, kExamples);
  EXPECT_FALSE(result.stopped);
  ASSERT_EQ(result.confusion.size(), static_cast<size_t>(kClasses));
  auto confusion = result.confusion;
  for (int64_t i = 0; i < kExamples; ++i) {
    const Prediction& prediction = result.predictions.at(static_cast<size_t>(i));
    --confusion[static_cast<size_t>(split_.label(i))][static_cast<size_t>(prediction.label)];
    EXPECT_GE(prediction.probability, 1.0 / kClasses);
    EXPECT_LE(prediction.probability, 1);
  }
  for (const auto& row : confusion) EXPECT_EQ(row, std::vector<int64_t>(kClasses));
  int64_t right = 0;
  for (size_t label = 0; label < kClasses; ++label) {
    EXPECT_EQ(sum_of({result.confusion[label]}), of_label[label]);
    right += result.confusion[label][label];
  }
  EXPECT_DOUBLE_EQ(result.summary.accuracy,
                   static_cast<double>(right) / static_cast<double>(kExamples));
}

TEST_F(EvaluateSplit, DoesNotDependOnTheBatchSize) {
  const auto one = result_of(1);
  for (const int64_t batch_size : {7, 64}) {
    const auto other = result_of(batch_size);
    EXPECT_EQ(other.confusion, one.confusion) << batch_size;
    EXPECT_EQ(other.summary.accuracy, one.summary.accuracy);
    EXPECT_NEAR(other.summary.loss, one.summary.loss, 1e-5);
  }
}

TEST_F(EvaluateSplit, IsWithoutDropout) {
  EXPECT_EQ(result_of(16).summary.loss, result_of(16).summary.loss);
  const RunConfig plain = tiny_run({"model.pooling=cls", "model.dropout=0"});
  const models::SequenceClassifier model(shape_, plain.model_config, plain.mixer_spec(),
                                         plain.mixer_settings, 1);
  EXPECT_EQ(evaluate(model, split_, shape_, 16, 0, {}).summary.loss, result_of(16).summary.loss);
}

TEST_F(EvaluateSplit, GivesEveryBatchTheFullLengthIfNothingIsTrimmed) {
  const NotedLengths trimmed, full;
  (void)evaluate(trimmed, split_, shape_, 20, 0, {});
  EXPECT_EQ(trimmed.noted, (std::vector<int64_t>{32, 80, 80}));
  (void)evaluate(full, split_, shape_, 20, 0, {}, one_rank(), /*trim=*/false);
  EXPECT_EQ(full.noted, (std::vector<int64_t>{80, 80, 80}));
}

TEST_F(EvaluateSplit, DrawsTheSameLimitedExamplesEachTimeFromAllOfThem) {
  const auto first = result_of(5, 20), again = result_of(9, 20);
  EXPECT_EQ(first.summary.num_examples, 20);
  EXPECT_EQ(first.confusion, again.confusion);
  for (size_t label = 0; label < kClasses; ++label) {
    EXPECT_GT(sum_of({first.confusion[label]}), 0) << "the first ones would all be of one label";
  }
  const auto all = result_of(5, kExamples + 10);
  EXPECT_EQ(all.summary.num_examples, kExamples);
  EXPECT_EQ(all.confusion, result_of(5).confusion);
}

TEST_F(EvaluateSplit, EndsAfterTheBatchInWhichAStopIsAskedFor) {
  const auto result =
      evaluate(model_, split_, shape_, 10, 0, [](int64_t) { raise_stop_flag(SIGTERM); });
  clear_stop_flag();
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.summary.num_examples, 10);
}

}  // namespace
}  // namespace lra::training
