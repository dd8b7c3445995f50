// When runs end, and runs that do not begin.
#include <gmock/gmock.h>

#include "data/test_fixtures.h"
#include "training/loop/test_trainer.h"

namespace lra::training {
namespace {

// A try of a sweep: compared after a few steps, trained to the end, and tested only then.
TEST_F(TinyTraining, StopsBeforeItsTestAndResumesToTheSameBits) {
  const RunConfig config = kept_run({"train.steps=8", "train.eval_every=4"});
  TrainOptions options;
  options.stop_before_test = true;
  options.stop_after = 4;
  const RunRecord early = run_with(options, config, "try");
  EXPECT_EQ(early.status, RunStatus::kStopped);
  EXPECT_EQ(early.steps, 4);
  ASSERT_TRUE(early.val.has_value()) << "what it is compared by";
  options.resume = true;
  options.stop_after = INT64_MAX;
  const RunRecord trained = run_with(options, config, "try");
  EXPECT_EQ(trained.status, RunStatus::kStopped);
  EXPECT_EQ(trained.steps, 8);
  EXPECT_EQ(trained.val->step, 8);
  EXPECT_FALSE(trained.test.has_value());
  const RunRecord whole = run(config, "whole"), tested = resume(config, "try");
  expect_same_end(tested, "try", whole, "whole");
}

TEST_F(TinyTraining, ARunThatEndsEarlyIsNotTestedEither) {
  TrainOptions options;
  options.stop_before_test = true;
  const RunRecord record = run_with(options,
                                    kept_run({"train.steps=40", "train.eval_every=2",
                                              "train.patience=1", "train.learning_rate=0"}),
                                    "try");
  EXPECT_EQ(record.status, RunStatus::kStopped);
  EXPECT_TRUE(record.ended_by.has_value());
  EXPECT_LT(record.steps, 40);
  EXPECT_FALSE(record.test.has_value());
}

TEST_F(TinyTraining, KeepsHowItsSettingsWereChosen) {
  const RunConfig config = kept_run({"train.steps=4"});
  TrainOptions options;
  options.stop_before_test = true;
  RunRecord record = run_with(options, config, "try");
  record.tuning = {5, 60, "validation accuracy", {"train.learning_rate"}};
  write_record(record, folder("try").record());
  EXPECT_EQ(resume(config, "try").tuning->steps, 60);
}

using ::testing::AllOf;
using ::testing::HasSubstr;

class RunEnd : public TinyTraining {};

TEST_F(RunEnd, IsAfterTheEpochsOrExamplesAskedFor) {
  const RunRecord epochs = run(kept_run({"train.epochs=0.5"}), "epochs");
  EXPECT_EQ(epochs.status, RunStatus::kDone);
  EXPECT_EQ(epochs.steps, 4) << "32 examples of 64, 8 at a time";
  EXPECT_EQ(epochs.planned_steps, 4);
  EXPECT_FALSE(epochs.ended_by.has_value());
  EXPECT_EQ(run(kept_run({"train.examples=33"}), "examples").steps, 5);
  // The schedule is that of as many steps.
  const RunRecord steps = run(kept_run({"train.steps=4", "train.schedule=cosine"}), "steps");
  EXPECT_EQ(run(kept_run({"train.epochs=0.5", "train.schedule=cosine"}), "cosine").weights_hash,
            steps.weights_hash);
}

TEST_F(RunEnd, ComesWithPatienceAndIsTheSameAfterAKill) {
  // A learning rate of 0 makes no validation better than the first one, after step 4.
  const RunConfig config = kept_run({"train.learning_rate=0", "train.weight_decay=0.0",
                                     "train.patience=2", "train.steps=1000", "train.log_every=3"});
  const RunRecord whole = run(config, "whole");
  EXPECT_EQ(whole.status, RunStatus::kDone);
  EXPECT_EQ(whole.steps, 12);
  EXPECT_EQ(whole.planned_steps, 1000);
  EXPECT_THAT(whole.ended_by.value_or(""), HasSubstr("train.patience"));
  EXPECT_TRUE(whole.test.has_value());
  for (const int64_t step : {7, 12}) {
    const std::string name = "killed" + std::to_string(step);
    copy_killed_after("whole", name, step);
    expect_same_end(whole, "whole", resume(config, name), name);
  }
}

TEST_F(RunEnd, ComesWhenTheTimeIsOver) {
  const RunRecord record = run(kept_run({"train.max_seconds=1e-9", "train.steps=1000"}), "run");
  EXPECT_EQ(record.status, RunStatus::kDone);
  EXPECT_EQ(record.steps, 1);
  ASSERT_EQ(record.val_curve.size(), 1u) << "its last step is validated";
  EXPECT_EQ(record.val_curve[0].step, 1);
  EXPECT_TRUE(record.test.has_value());
  EXPECT_THAT(record.ended_by.value_or(""), HasSubstr("train.max_seconds"));
}

TEST_F(RunEnd, ByTimeIsMadeAgainAfterTheSameStep) {
  const auto end_after = [&](const RunConfig& config, const std::string& name, int64_t step) {
    TrainOptions options;
    options.data_root = scratch_.file("data");
    options.quiet = true;
    options.time_ends_after = step;
    return Trainer(prepare_run(config, folder(name), options)).run();
  };
  const RunRecord early = end_after(kept_run({"train.max_seconds=1000"}), "early", 7);
  EXPECT_EQ(early.steps, 7);
  EXPECT_THAT(early.ended_by.value_or(""), HasSubstr("train.max_seconds"));
  EXPECT_TRUE(early.test.has_value());
  const RunRecord again = end_after(kept_run({"train.max_seconds=1e-9"}), "again", 7);
  EXPECT_EQ(again.weights_hash, early.weights_hash);
  const RunRecord whole = end_after(kept_run({"train.max_seconds=1e-9"}), "whole", 12);
  EXPECT_EQ(whole.steps, 12);
  EXPECT_FALSE(whole.ended_by.has_value());
}

TEST_F(RunEnd, IsAStopAfterTheStepThatWasNamed) {
  const RunConfig config = kept_run({"train.schedule=cosine"});
  TrainOptions options;
  options.data_root = scratch_.file("data");
  options.quiet = true;
  const RunRecord whole = Trainer(prepare_run(config, folder("whole"), options)).run();
  options.stop_after = 8;
  const RunRecord beginning = Trainer(prepare_run(config, folder("part"), options)).run();
  EXPECT_EQ(beginning.status, RunStatus::kStopped);
  EXPECT_EQ(beginning.steps, 8);
  ASSERT_EQ(beginning.val_curve.size(), 2u) << "the validation of the last step is made";
  EXPECT_EQ(beginning.val_curve[1].loss, whole.val_curve.at(1).loss);
  expect_same_end(whole, "whole", resume(config, "part"), "part");
}

TEST_F(RunEnd, CountsTheTimeBeforeAResume) {
  const RunConfig config = kept_run({"train.max_seconds=1000"});
  (void)run(config, "whole");
  copy_killed_after("whole", "stopped", 7);
  RunRecord before = read_record(folder("stopped").record());
  before.status = RunStatus::kStopped;
  before.total_seconds = 1001;
  write_record(before, folder("stopped").record());
  const RunRecord record = resume(config, "stopped");
  EXPECT_EQ(record.status, RunStatus::kDone);
  EXPECT_EQ(record.steps, 7);
  EXPECT_TRUE(record.ended_by.has_value());
}

TEST_F(RunEnd, InMicroBatchesIsAFunctionOfTheSeedAndTheSameAfterAKill) {
  const RunConfig config = kept_run({"train.accumulate=3"});
  const RunRecord whole = run(config, "whole");
  EXPECT_EQ(whole.examples, 96);
  copy_killed_after("whole", "killed", 7);
  expect_same_end(whole, "whole", resume(config, "killed"), "killed");
  EXPECT_NE(whole.weights_hash, run(kept_run(), "uncut").weights_hash) << "another dropout pattern";
}

TEST_F(RunEnd, IsTheSameWithRecomputedActivations) {
  const RunRecord kept = run(kept_run({"model.layers=2"}), "kept");
  const RunRecord again = run(kept_run({"model.layers=2", "train.recompute=true"}), "again");
  EXPECT_EQ(again.weights_hash, kept.weights_hash);
  EXPECT_EQ(again.test->loss, kept.test->loss);
}

TEST_F(RunEnd, IsTheSameWithoutAMemoryEstimate) {
  const RunRecord with = run(kept_run(), "with");
  EXPECT_GT(with.estimated_resident_bytes.value_or(0), 0);
  const RunRecord without = run(kept_run({"train.memory_check=off"}), "without");
  EXPECT_FALSE(without.estimated_resident_bytes.has_value());
  EXPECT_EQ(with.weights_hash, without.weights_hash);
}

TEST_F(RunEnd, IsBeforeTheBeginningWhereTheMemoryIsNotThere) {
  const std::vector<std::string> large = {"train.batch_size=65536", "model.embed_dim=256",
                                          "model.mlp_dim=1024", "model.layers=6"};
  EXPECT_THAT(error_of([&] { (void)run(tiny_run(large, "linformer"), "large"); }),
              AllOf(HasSubstr("memory"), HasSubstr("train.accumulate"),
                    HasSubstr("train.recompute"), HasSubstr("bf16")));
  EXPECT_FALSE(fs::exists(folder("large").path));
}

TEST_F(RunEnd, IsBeforeTheBeginningWhereOtherRunsTakeTheMemory) {
  TrainOptions options;
  options.data_root = scratch_.file("data");
  options.quiet = true;
  options.memory_limit = 1000;
  EXPECT_THAT(error_of([&] { Trainer(prepare_run(kept_run(), folder("beside"), options)).run(); }),
              HasSubstr("1.0 kB that are available"));
  EXPECT_FALSE(fs::exists(folder("beside").path));
}

TEST_F(RunEnd, KeepsTheWarningsOfTheWholeRun) {
  const RunConfig config = kept_run({"train.warmup_steps=50"});
  const RunRecord whole = run(config, "whole");
  ASSERT_EQ(whole.warnings.value_or(std::vector<std::string>{}).size(), 1u);
  EXPECT_THAT(whole.warnings->front(), HasSubstr("train.warmup_steps"));
  copy_killed_after("whole", "damaged", 7);
  write_file_atomically(step_folder("damaged", 7) + "/model.safetensors", "damage");
  const RunRecord resumed = resume(config, "damaged");
  ASSERT_EQ(resumed.warnings.value_or(std::vector<std::string>{}).size(), 2u);
  EXPECT_EQ(resumed.warnings->front(), whole.warnings->front());
  EXPECT_THAT(resumed.warnings->back(), HasSubstr("checkpoint skipped"));
  EXPECT_FALSE(run(kept_run(), "even").warnings.has_value());
}

// Somebody else's checkpoint fits and would be gone on with as if it were the run's own.
TEST_F(RunEnd, IsNotThatOfAnotherRunsWeights) {
  const RunConfig config = kept_run();
  const RunRecord whole = run(config, "whole");
  (void)run(kept_run({}, 4), "other");
  copy_killed_after("whole", "mixed", 7);
  const auto take_from_other = [&](int64_t step) {
    fs::remove_all(step_folder("mixed", step));
    fs::copy(step_folder("other", step), step_folder("mixed", step), fs::copy_options::recursive);
  };
  take_from_other(7);
  const RunRecord resumed = resume(config, "mixed");
  EXPECT_THAT(resumed.warnings.value().front(),
              HasSubstr("holds the weights of another run: seed 4 instead of 3"));
  EXPECT_EQ(resumed.weights_hash, whole.weights_hash);
  copy_killed_after("whole", "only", 1);
  fs::remove_all(step_folder("only", 1));
  fs::copy(step_folder("other", 1), step_folder("only", 1), fs::copy_options::recursive);
  EXPECT_THAT(error_of([&] { resume(config, "only"); }), HasSubstr("seed 4 instead of 3"));
}

}  // namespace
}  // namespace lra::training
