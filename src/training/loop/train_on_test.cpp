// Runs that are trained on with other settings, and runs that begin with trained weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/safetensors.h"
#include "training/loop/test_trainer.h"
#include "training/run/loaded_run.h"
#include "training/run/make_model.h"
#include "training/settings/stored_run.h"

namespace lra::training {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string error_of(const auto& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class TrainOn : public TinyTraining {
 protected:
  RunRecord train_on(const std::string& name, const std::vector<std::string>& sets) const {
    const ChangedRun changed = with_changes(read_run(folder(name)), sets);
    TrainOptions options;
    options.resume = true;
    options.change = changed.change;
    return run_with(options, changed.config, name);
  }
  RunRecord begin_with(const std::string& weights, const RunConfig& config, const std::string& name,
                       bool partial = false) const {
    TrainOptions options;
    options.init_from = weights;
    options.init_partial = partial;
    return run_with(options, config, name);
  }
  std::string weights_of(const std::string& name) const {
    return folder(name).checkpoints() + "/latest/model.safetensors";
  }
};

TEST_F(TrainOn, MoreStepsGiveTheWeightsOfARunThatWasAsLongFromTheBeginning) {
  run(kept_run(), "run");
  const RunRecord longer = train_on("run", {"train.steps=20"});
  const RunRecord whole = run(kept_run({"train.steps=20"}), "whole");
  EXPECT_EQ(longer.status, RunStatus::kDone);
  EXPECT_EQ(longer.steps, 20);
  EXPECT_EQ(longer.weights_hash, whole.weights_hash);
  EXPECT_EQ(longer.test->loss, whole.test->loss);
  ASSERT_EQ(longer.val_curve.size(), whole.val_curve.size());
  ASSERT_TRUE(longer.earlier_parts);
  ASSERT_EQ(longer.earlier_parts->size(), 1U);
  EXPECT_EQ(longer.earlier_parts->front().steps, 12);
  EXPECT_EQ(longer.earlier_parts->front().change, "train.steps=20 instead of 12");
  EXPECT_EQ(longer.division, "free-for-all");
  EXPECT_EQ(longer.division_reason, "its settings changed while it was trained");
  EXPECT_NE(longer.config_hash, whole.config_hash);
  EXPECT_NE(longer.fingerprint, whole.fingerprint);
  std::vector<double> losses, whole_losses;
  EXPECT_EQ(metric_lines("run", &losses), metric_lines("whole", &whole_losses));
  EXPECT_EQ(losses, whole_losses);
}

TEST_F(TrainOn, ResumesWithinALaterPartAndKeepsBestWeightsOfAnEarlierOne) {
  run(kept_run(), "run");
  const RunRecord longer = train_on("run", {"train.steps=20", "train.learning_rate=1e-3"});
  for (const int64_t step : {12, 15}) {  // before and after the first step with the new settings
    const std::string name = "killed" + std::to_string(step);
    copy_killed_after("run", name, step);
    expect_same_end(longer, "run", resume(read_run(folder(name)).config, name), name);
  }
  // A checkpoint of the first part is one of the run.
  const std::string early = step_folder("run", 4) + "/model.safetensors";
  EXPECT_EQ(LoadedRun(folder("run").path, {.checkpoint = early}, ModelPrecision::kAsTrained)
                .foreign_weights(),
            "");
}

// Step 12 ended the first part, and is due under neither interval.
TEST_F(TrainOn, RollsBackToTheEndOfAnEarlierPart) {
  run(kept_run({"train.on_nonfinite=roll_back", "train.checkpoint_every=0", "train.eval_every=5"}),
      "run");
  train_on("run", {"train.steps=20", "train.eval_every=7"});
  copy_killed_after("run", "poisoned", 12);
  const RunConfig config = read_run(folder("poisoned")).config;
  const TaskShape shape = config.make_task()->shape();
  FlatParameters parameters(make_model(config, shape));
  CheckpointStore store = store_of(folder("poisoned"));
  TrainProgress progress = store.load(12, parameters);
  for (int64_t token = 1; token < shape.vocabulary; ++token) poison_token(parameters, token);
  progress.step = 13;
  store.save(parameters, progress, false);
  const RunRecord record = resume(config, "poisoned");
  EXPECT_EQ(record.status, RunStatus::kDone);
  EXPECT_EQ(record.roll_backs, 1);
  EXPECT_EQ(record.undone_steps, 2);
}

TEST_F(TrainOn, ReadsARunThatWasKilledBetweenItsRecordAndItsSettings) {
  run(kept_run(), "run");
  const std::string settings = read_file(folder("run").config(), 1 << 20);
  train_on("run", {"train.steps=20"});
  write_file_atomically(folder("run").config(), settings);
  EXPECT_EQ(read_run(folder("run")).config.train.steps, 20);
}

TEST_F(TrainOn, RefusesWhatWouldChangeItsPast) {
  const StoredRun stored{kept_run(), {}};
  for (const char* set : {"train.batch_size=4", "model.dropout=0.5", "task.length=80",
                          "mixer.rotary=true", "train.precision=bf16"}) {
    EXPECT_THAT(error_of([&] { with_changes(stored, {set}); }),
                HasSubstr("cannot change in a run that continues"))
        << set;
  }
  EXPECT_THAT(error_of([&] { with_changes(stored, {"train.step=1"}); }),
              HasSubstr("did you mean 'train.steps'"));
  EXPECT_THAT(error_of([&] { with_changes(stored, {"steps=20"}); }),
              HasSubstr("did you mean 'train.steps'"));
  EXPECT_EQ(with_changes(stored, {"train.steps=12"}).change, "");
  run(stored.config, "run");
  EXPECT_THAT(error_of([&] { train_on("run", {"train.steps=10"}); }),
              HasSubstr("the run has completed all of its 12 steps"));
}

TEST_F(TrainOn, BeginsWithTheWeightsOfAnotherRun) {
  const RunRecord first = run(kept_run(), "first");
  const RunConfig config = kept_run({"train.learning_rate=0"}, 9);
  const RunRecord second = begin_with(weights_of("first"), config, "second");
  EXPECT_EQ(second.weights_hash, first.weights_hash);
  EXPECT_EQ(second.division, "free-for-all");
  EXPECT_EQ(second.division_reason, "began with trained weights");
  ASSERT_TRUE(second.initial_weights);
  EXPECT_EQ(second.initial_weights->origin, text_of(first));
  EXPECT_EQ(second.initial_weights->hash, first.weights_hash);
  EXPECT_THAT(second.initial_weights->fresh, IsEmpty());
  EXPECT_NE(second.config_hash, run(config, "scratch").config_hash);
}

TEST_F(TrainOn, ThatBeganWithTrainedWeightsGoesOnBitForBit) {
  run(kept_run(), "first");
  const RunConfig config = kept_run({}, 9);
  const RunRecord whole = begin_with(weights_of("first"), config, "whole");
  fs::remove_all(folder("first").path);  // the run has what it needs
  for (const int64_t step : {0, 5}) {
    const std::string name = "killed" + std::to_string(step);
    copy_killed_after("whole", name, step);
    expect_same_end(whole, "whole", resume(read_run(folder(name)).config, name), name);
  }
  copy_killed_after("whole", "lost", 0);
  fs::remove_all(step_folder("lost", 0));
  EXPECT_THAT(error_of([&] { resume(read_run(folder("lost")).config, "lost"); }),
              HasSubstr("with the weights that the run begins with, is missing"));
}

// Cast, they would have other values; drawn at random, as others without a counterpart, none.
TEST_F(TrainOn, NamesTheTypeOfWeightsThatAreNotFloat32) {
  run(kept_run(), "first");
  const auto file = SafetensorsFile::open(weights_of("first"));
  std::vector<TensorView> tensors = file.tensors();
  const std::vector<std::byte> half(tensors[0].data.size() / 2);
  tensors[0].dtype = Dtype::kF16;
  tensors[0].data = half;
  const std::string path = scratch_.file("half.safetensors");
  write_safetensors(path, tensors, {});
  EXPECT_THAT(error_of([&] { begin_with(path, kept_run({}, 9), "refused", true); }),
              AllOf(HasSubstr("is F16"), HasSubstr("expected F32 weights")));
}

TEST_F(TrainOn, TellsAJumpOfTheLearningRate) {
  run(kept_run({"train.schedule=cosine"}), "first");
  EXPECT_THAT(train_on("first", {"train.steps=24"}).warnings.value(),
              ::testing::ElementsAre(HasSubstr("the learning rate rises from ")));
}

TEST_F(TrainOn, NamesTensorsWithoutCounterpart) {
  run(kept_run(), "first");
  const RunConfig other = kept_run({"model.mlp_dim=8", "model.classifier=linear"}, 9);
  const std::string refusal = error_of([&] { begin_with(weights_of("first"), other, "refused"); });
  EXPECT_THAT(refusal, HasSubstr("lacks tensors of the model: '"));
  EXPECT_THAT(refusal, HasSubstr("holds tensors that are not in the model: '"));
  EXPECT_THAT(refusal, HasSubstr("--init-partial"));
  const RunRecord partial = begin_with(weights_of("first"), other, "partial", true);
  EXPECT_EQ(partial.status, RunStatus::kDone);
  EXPECT_THAT(partial.initial_weights->fresh,
              ::testing::Contains("encoder.layers.0.mlp.fc1.weight"));
  EXPECT_THAT(partial.initial_weights->unused, ::testing::Contains("head.hidden.weight"));
}

}  // namespace
}  // namespace lra::training
