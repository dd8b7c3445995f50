// Runs that predict masked inputs, and runs that begin with their weights.
#include "training/settings/self_pretraining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/test_tensors.h"
#include "records/check_record.h"
#include "training/loop/stepper.h"
#include "training/loop/test_trainer.h"
#include "training/ranks/test_ranks.h"
#include "training/run/loaded_run.h"
#include "training/run/make_model.h"
#include "training/settings/stored_run.h"

namespace lra::training {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::StartsWith;

RunConfig masked_run(const std::vector<std::string>& sets = {}) {
  std::vector<std::string> all = {"train.objective=masked"};
  all.insert(all.end(), sets.begin(), sets.end());
  return kept_run(all);
}

class SelfPretraining : public TinyTraining {
 protected:
  RunRecord begin_with(const std::string& weights, const RunConfig& config,
                       const std::string& name) const {
    TrainOptions options;
    options.init_from = weights;
    options.provenance = make_provenance({});
    return run_with(options, config, name);
  }
  std::string weights_of(const std::string& name) const {
    return folder(name).checkpoints() + "/latest/model.safetensors";
  }
};

TEST_F(SelfPretraining, LearnsToPredictHiddenSymbols) {
  const RunRecord record = begin_with(
      "", masked_run({"train.steps=60", "train.eval_every=30", "train.learning_rate=1e-2"}), "run");
  EXPECT_EQ(record.status, RunStatus::kDone);
  EXPECT_EQ(record.division, "pretraining");
  EXPECT_FALSE(record.published_setting);
  EXPECT_THAT(record.baselines, IsEmpty());
  ASSERT_TRUE(record.val && record.val->num_positions);
  EXPECT_GT(*record.val->num_positions, 24);
  std::vector<double> losses;
  metric_lines("run", &losses);
  EXPECT_LT(mean(losses, 50, 10), 0.85 * mean(losses, 0, 5));
  EXPECT_NO_THROW(read_consistent_record(folder("run").record()));
}

TEST_F(SelfPretraining, HasTheSameBitsAfterAResumeAndOnTwoThreads) {
  const RunConfig config = masked_run({"model.dropout=0.1"});
  const RunRecord whole = run(config, "whole");
  copy_killed_after("whole", "killed", 5);
  expect_same_end(whole, "whole", resume(read_run(folder("killed")).config, "killed"), "killed");
  set_num_threads(2);
  const RunRecord two = run(masked_run({"model.dropout=0.1", "train.prefetch=3"}), "two");
  set_num_threads(1);
  EXPECT_EQ(two.weights_hash, whole.weights_hash);
  EXPECT_EQ(two.test->loss, whole.test->loss);
}

TEST_F(SelfPretraining, EvaluatesToWhatItsRecordSays) {
  const RunRecord record = run(masked_run(), "run");
  const LoadedRun loaded(folder("run").path, {.checkpoint = "last"}, ModelPrecision::kAsTrained);
  const Dataset dataset = open_run_data(loaded, {.root = scratch_.file("data"), .quiet = true});
  const EvaluationResult now = evaluate_run(loaded, dataset, "test", 0, true);
  EXPECT_EQ(now.summary.accuracy, record.test->accuracy);
  EXPECT_EQ(now.summary.loss, record.test->loss);
  EXPECT_EQ(now.summary.num_positions, record.test->num_positions);
  EXPECT_THAT(now.confusion, IsEmpty());
}

TEST_F(SelfPretraining, PutsARunOnTheSameDataIntoItsDivision) {
  const RunRecord before = run(masked_run(), "before");
  const RunRecord after = begin_with(weights_of("before"), kept_run({"train.steps=8"}), "after");
  EXPECT_EQ(after.status, RunStatus::kDone);
  EXPECT_EQ(after.division, "self-pretrained");
  EXPECT_THAT(after.division_reason,
              StartsWith("12 steps of masked pretraining on the task's own inputs; "));
  ASSERT_TRUE(after.initial_weights && after.initial_weights->pretraining);
  EXPECT_EQ(after.initial_weights->pretraining->fingerprint, before.fingerprint);
  EXPECT_THAT(after.initial_weights->fresh, Each(StartsWith("head.")));
  EXPECT_THAT(after.initial_weights->unused, Contains("embedding.mask"));
  EXPECT_THAT(after.initial_weights->unused, Contains("token_head.weight"));
  EXPECT_NO_THROW(read_consistent_record(folder("after").record()));
  // A resume and a repetition from its own step 0 keep the division.
  copy_killed_after("after", "killed", 3);
  const RunRecord resumed = resume(read_run(folder("killed")).config, "killed");
  EXPECT_EQ(resumed.division, "self-pretrained");
  EXPECT_EQ(resumed.weights_hash, after.weights_hash);
  const RunRecord again = begin_with(step_folder("after", 0) + "/model.safetensors",
                                     read_run(folder("after")).config, "again");
  EXPECT_EQ(again.division, "self-pretrained");
  EXPECT_EQ(again.weights_hash, after.weights_hash);
}

TEST_F(SelfPretraining, IsNotWhatItIsOnOtherDataOrWithOtherWeightsBefore) {
  run(masked_run(), "before");
  const auto division = [&](const std::string& weights, const RunConfig& config,
                            const std::string& name) {
    return begin_with(weights_of(weights), config, name).division;
  };
  EXPECT_EQ(division("before", masked_run({"train.steps=6"}), "longer"), "pretraining");
  EXPECT_EQ(division("longer", kept_run(), "chain"), "free-for-all");
  run(kept_run(), "labels");
  EXPECT_EQ(division("labels", kept_run({}, 9), "after labels"), "free-for-all");
  // The same weights without the record beside them.
  fs::copy(weights_of("before"), scratch_.file("bare.safetensors"));
  EXPECT_EQ(begin_with(scratch_.file("bare.safetensors"), kept_run(), "bare").division,
            "free-for-all");
}

TEST_F(SelfPretraining, CannotBecomeTheObjectiveOfARunThatGoesOn) {
  const StoredRun stored{kept_run(), {}};
  EXPECT_THROW(with_changes(stored, {"train.objective=masked"}), Error);
}

// A step's hidden positions differ in number from rank to rank.
TEST_F(SelfPretraining, HasTheGradientsOfMicroBatchesOnRanks) {
  const RunConfig config =
      tiny_run({"train.objective=masked", "model.dropout=0", "model.attention_dropout=0"});
  const auto task = config.make_task();
  run(config, "run");
  const LoadedRun loaded(folder("run").path, {.checkpoint = "last"}, ModelPrecision::kAsTrained);
  const Split split =
      open_run_data(loaded, {.root = scratch_.file("data"), .quiet = true}).split("train");
  const auto parts = [&](StepParts parts) {
    BatchLoader loader(split, task->shape(), BatchOrder(split.size(), 8, 1), 0,
                       {.parts = parts, .masking = config.masking()});
    return loader.next();
  };
  const auto gradients = [&](StepParts share, Ranks& ranks, StepLoss& loss) {
    const auto model = make_model(config, task->shape());
    FlatParameters parameters(model);
    Stepper stepper(model, parameters, config.train, config.seed, ranks);
    loss = stepper.gradients(parts(share), 0);
    return parameters.gradients.clone();
  };
  StepLoss whole, cut;
  const at::Tensor expected = gradients({}, one_rank(), whole);
  EXPECT_LE(ops::relative_error(gradients({.count = 2, .of = 2}, one_rank(), cut), expected), 1e-5);
  EXPECT_EQ(cut.examples, whole.examples);
  on_ranks(2, [&](Ranks& ranks) {
    StepLoss of_rank;
    const at::Tensor found =
        gradients({.first = ranks.rank(), .count = 1, .of = 2}, ranks, of_rank);
    EXPECT_LE(ops::relative_error(found, expected), 1e-5);
    EXPECT_EQ(of_rank.examples, whole.examples);
    EXPECT_NEAR(of_rank.mean(), whole.mean(), 1e-5);
  });
}

}  // namespace
}  // namespace lra::training
