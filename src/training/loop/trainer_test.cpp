#include "training/loop/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <thread>

#include "base/stop_flag.h"
#include "io/safetensors.h"
#include "io/toml.h"
#include "tasks/prepare_data.h"
#include "tasks/text/test_reviews.h"
#include "training/loop/test_trainer.h"
#include "training/run/loaded_run.h"
#include "training/settings/presets.h"

namespace lra::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(TinyTraining, LearnsAndWritesEverythingDown) {
  const RunConfig config =
      tiny_run({"train.steps=80", "train.eval_every=30", "train.checkpoint_every=0",
                "train.learning_rate=1e-2", "model.dropout=0", "model.attention_dropout=0",
                "model.pooling=mean", "model.positions=learned"});
  const RunRecord record = run(config, "run");
  EXPECT_EQ(record.status, RunStatus::kDone);
  EXPECT_EQ(record.steps, 80);
  EXPECT_EQ(record.planned_steps, 80);
  EXPECT_EQ(record.preset_steps, 5000) << "of the small preset";
  EXPECT_EQ(record.test_split_examples, 30);
  EXPECT_EQ(record.examples, 640);
  EXPECT_EQ(record.validation, "own");
  EXPECT_EQ(record.data_source, "generated");
  EXPECT_EQ(record.fingerprint.size(), 32u);
  EXPECT_GT(record.num_parameters, 0);
  EXPECT_GT(record.train_tokens_per_s, 0);
  EXPECT_GT(record.train_examples_per_s.value_or(0), 0);
  EXPECT_GE(record.computed_tokens.value_or(0), record.tokens);
  EXPECT_LE(record.tokens, 640 * 39) << "padding is not counted";
  EXPECT_GT(record.peak_resident_bytes, 0);
  EXPECT_GE(record.total_seconds, record.train_seconds);
  ASSERT_TRUE(record.test.has_value());
  EXPECT_EQ(record.test->num_examples, 30);
  EXPECT_EQ(record.test->step, 80);
  EXPECT_EQ(record.baselines.count("majority"), 1u);
  ASSERT_EQ(record.val_curve.size(), 3u) << "after steps 30, 60 and the last one";
  EXPECT_EQ(record.val_curve.back().step, 80);
  EXPECT_EQ(record.val_curve.back().num_examples, 24);

  std::vector<double> losses;
  const auto lines = metric_lines("run", &losses);
  ASSERT_EQ(losses.size(), 80u);
  EXPECT_EQ(lines.size(), 80u + 3 + 1);
  EXPECT_EQ(lines.back(), std::pair(std::string("test"), int64_t{80}));
  EXPECT_LT(mean(losses, 70, 10), 0.8 * mean(losses, 0, 10));

  EXPECT_EQ(to_json(read_record(folder("run").record())), to_json(record));
  const ConfigTable written = parse_toml_file(folder("run").config());
  EXPECT_EQ(canonical_text(RunConfig::from_table(written).to_table()),
            canonical_text(config.to_table()));
  EXPECT_EQ(fs::read_symlink(folder("run").checkpoints() + "/latest"), "step_80");
  EXPECT_EQ(fs::read_symlink(folder("run").checkpoints() + "/best"),
            "step_" + std::to_string(record.best_val->step));
}

TEST_F(TinyTraining, IsAFunctionOfItsSeed) {
  const RunRecord a = run(kept_run(), "a"), b = run(kept_run(), "b"), c = run(kept_run({}, 4), "c");
  expect_same_end(a, "a", b, "b");
  EXPECT_NE(a.weights_hash, c.weights_hash);
  EXPECT_NE(a.fingerprint, c.fingerprint);
  EXPECT_EQ(a.data_hash, c.data_hash);
}

TEST_F(TinyTraining, LearnsInBf16WhatItLearnsInFp32) {
  const auto first_and_last_losses = [&](const std::string& precision) {
    run(tiny_run({"train.steps=80", "train.eval_every=80", "train.checkpoint_every=0",
                  "train.learning_rate=1e-2", "model.dropout=0", "model.attention_dropout=0",
                  "model.pooling=mean", "model.positions=learned", "train.precision=" + precision}),
        precision);
    std::vector<double> losses;
    metric_lines(precision, &losses);
    EXPECT_LT(mean(losses, 70, 10), 0.8 * mean(losses, 0, 10));
    return std::pair(mean(losses, 0, 10), mean(losses, 70, 10));
  };
  const auto fp32 = first_and_last_losses("fp32"), bf16 = first_and_last_losses("bf16");
  // Close while the weights are; later each precision goes its own way to the same end.
  EXPECT_NE(bf16.first, fp32.first);
  EXPECT_NEAR(bf16.first, fp32.first, 0.02 * fp32.first);
  EXPECT_NEAR(bf16.second, fp32.second, 0.15 * fp32.second);
}

TEST_F(TinyTraining, InBf16IsAFunctionOfItsSeedAndGoesOnBitForBit) {
  const RunConfig config = kept_run({"train.precision=bf16"});
  const RunRecord a = run(config, "a"), b = run(config, "b");
  expect_same_end(a, "a", b, "b");
  copy_killed_after("a", "killed", 7);
  expect_same_end(a, "a", resume(config, "killed"), "killed");
  EXPECT_NE(a.weights_hash, run(kept_run(), "fp32").weights_hash);
  EXPECT_EQ(std::get<std::string>(a.config.find("train")->as_table()->find("precision")->value),
            "bf16");
}

TEST_F(TinyTraining, DoesNotDependOnPrefetch) {
  const RunRecord a = run(kept_run({"train.prefetch=0"}), "a");
  const RunRecord b = run(kept_run({"train.prefetch=3"}), "b");
  EXPECT_EQ(a.weights_hash, b.weights_hash);
}

TEST_F(TinyTraining, GoesOnBitForBitAfterBeingKilledAnywhere) {
  const RunConfig config = kept_run();
  const RunRecord whole = run(config, "whole");
  // Steps 4 and 8 validate.
  for (const int64_t step : {1, 4, 7, 8, 11}) {
    SCOPED_TRACE("killed after step " + std::to_string(step));
    const std::string name = "killed" + std::to_string(step);
    copy_killed_after("whole", name, step);
    expect_same_end(whole, "whole", resume(config, name), name);
    std::vector<double> losses, whole_losses;
    EXPECT_EQ(metric_lines(name, &losses), metric_lines("whole", &whole_losses));
    EXPECT_EQ(losses, whole_losses);
  }
}

TEST_F(TinyTraining, GoesOnFromTheCheckpointBeforeADamagedOne) {
  const RunConfig config = kept_run();
  const RunRecord whole = run(config, "whole");
  copy_killed_after("whole", "damaged", 9);
  fs::resize_file(step_folder("damaged", 9) + "/optimizer.safetensors", 1000);
  expect_same_end(whole, "whole", resume(config, "damaged"), "damaged");
}

TEST_F(TinyTraining, IsTestedOnceMoreWhenItDiedBeforeItsRecordSaidDone) {
  const RunConfig config = kept_run();
  RunRecord whole = run(config, "whole");
  fs::copy(folder("whole").path, folder("died").path,
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  RunRecord before = whole;
  before.status = RunStatus::kRunning;
  before.test.reset();
  write_record(before, folder("died").record());
  expect_same_end(whole, "whole", resume(config, "died"), "died");
  std::vector<double> losses, whole_losses;
  EXPECT_EQ(metric_lines("died", &losses), metric_lines("whole", &whole_losses));
}

TEST_F(TinyTraining, WithoutItsCheckpointsDoesNotStartOver) {
  const RunConfig config = kept_run();
  (void)run(config, "whole");
  for (const bool with_folder : {true, false}) {
    const std::string name = with_folder ? "emptied" : "removed";
    copy_killed_after("whole", name, 0);
    if (!with_folder) fs::remove_all(folder(name).checkpoints());
    EXPECT_THAT(error_of([&] { resume(config, name); }),
                AllOf(HasSubstr("those of the 12 steps so far are missing"), HasSubstr("--out")));
  }
}

TEST_F(TinyTraining, KilledBeforeItsFirstCheckpointStartsOver) {
  const RunConfig config = kept_run();
  const RunRecord whole = run(config, "whole");
  copy_killed_after("whole", "killed", 0);
  RunRecord before = whole;
  before.status = RunStatus::kRunning;
  before.test.reset();
  before.weights_hash.clear();
  write_record(before, folder("killed").record());
  expect_same_end(whole, "whole", resume(config, "killed"), "killed");
}

TEST_F(TinyTraining, StoppedExactlyAtAValidationGoesOnBitForBit) {
  const RunConfig config = kept_run();
  const RunRecord whole = run(config, "whole");
  copy_killed_after("whole", "stopped", 8);
  raise_stop_flag(SIGTERM);
  const RunRecord stopped = resume(config, "stopped");
  clear_stop_flag();
  EXPECT_EQ(stopped.status, RunStatus::kStopped);
  EXPECT_EQ(stopped.steps, 8);
  EXPECT_EQ(stopped.val_curve.size(), 2u);
  EXPECT_FALSE(stopped.test.has_value());
  EXPECT_EQ(read_record(folder("stopped").record()).status, RunStatus::kStopped);
  expect_same_end(whole, "whole", resume(config, "stopped"), "stopped");
}

// The signal comes whenever it comes; with a validation after each step often within one.
TEST_F(TinyTraining, StoppedBySignalsInTheMiddleGoesOnBitForBit) {
  const RunConfig config = kept_run({"train.steps=30", "train.eval_every=1"});
  const RunRecord whole = run(config, "whole");
  RunRecord record;
  bool started = false;
  for (const int64_t step : {3, 9, 20}) {
    std::atomic<bool> ended = false;
    std::thread signaller([&] {
      while (!ended && !fs::exists(step_folder("stopped", step))) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      if (!ended) raise_stop_flag(SIGINT);
    });
    record = run(config, "stopped", started);
    started = ended = true;
    signaller.join();
    clear_stop_flag();
    if (record.status == RunStatus::kDone) break;  // the signal came too late
    EXPECT_EQ(record.status, RunStatus::kStopped);
    EXPECT_GE(record.steps, step);
  }
  if (record.status == RunStatus::kStopped) record = resume(config, "stopped");
  expect_same_end(whole, "whole", record, "stopped");
}

TEST_F(TinyTraining, StoppedDuringTheTestIsTestedAfterwards) {
  const RunConfig config = kept_run();
  const RunRecord whole = run(config, "run");
  raise_stop_flag(SIGTERM);
  const RunRecord stopped = resume(config, "run");
  clear_stop_flag();
  EXPECT_EQ(stopped.status, RunStatus::kStopped);
  EXPECT_FALSE(stopped.test.has_value());
  expect_same_end(whole, "run", resume(config, "run"), "run");
}

TEST_F(TinyTraining, WithNothingButDamagedCheckpointsIsRefused) {
  const RunConfig config = tiny_run({"train.keep_checkpoints=1", "train.checkpoint_every=0"});
  const RunRecord whole = run(config, "run");
  for (const auto& entry : fs::directory_iterator(folder("run").checkpoints())) {
    if (!entry.is_symlink()) fs::resize_file(entry.path() / "model.safetensors", 100);
  }
  EXPECT_THAT(error_of([&] { (void)resume(config, "run"); }),
              AllOf(HasSubstr(folder("run").checkpoints()), HasSubstr("model.safetensors")));
}

TEST_F(TinyTraining, OnOtherDataThanBeforeIsRefused) {
  const RunConfig config = kept_run();
  (void)run(config, "run");
  fs::remove_all(scratch_.file("data"));
  QuietProgress progress;
  config.make_task()->make({.out = scratch_.file("data"), .seed = 1}, progress);
  EXPECT_THAT(error_of([&] { (void)resume(config, "run"); }),
              AllOf(HasSubstr(folder("run").path), HasSubstr("data")));
}

// A number that was requested is not ignored; one that was not goes into the record.
TEST_F(TinyTraining, OnAnotherNumberOfExamplesThanAskedForIsRefused) {
  (void)run(tiny_run({}), "run");
  EXPECT_THAT(error_of([&] { (void)run(tiny_run({"task.num_train=65"}), "more"); }),
              HasSubstr("holds data of 64 training examples instead of 65"));
  EXPECT_FALSE(fs::exists(folder("more").path));
  EXPECT_EQ(run(tiny_run({"task.num_train=96000"}), "usual").data_examples->train, 64);
}

TEST_F(TinyTraining, OnASplitWithoutExamplesIsRefused) {
  for (const char* name : {"train", "val", "test"}) {
    const std::string none = "task.num_" + std::string(name) + "=0";
    fs::remove_all(scratch_.file("data/listops"));
    EXPECT_THAT(error_of([&] { (void)run(tiny_run({none}), name); }),
                AllOf(HasSubstr("'" + std::string(name) + "'"), HasSubstr("no examples")));
  }
}

TEST_F(TinyTraining, ClipsOnlyGradientsThatAreTooLong) {
  const RunRecord plain = run(kept_run(), "plain");
  const RunRecord wide = run(kept_run({"train.clip_norm=1e9"}), "wide");
  EXPECT_EQ(wide.weights_hash, plain.weights_hash);
  EXPECT_NE(run(kept_run({"train.clip_norm=1e-3"}), "narrow").weights_hash, plain.weights_hash);
}

TEST_F(TinyTraining, ThatDivergesEndsWithoutSavingTheBadWeights) {
  for (const char* eval_every : {"train.eval_every=1", "train.eval_every=100"}) {
    SCOPED_TRACE(eval_every);
    const std::string name = eval_every;
    const RunRecord record =
        run(kept_run({"train.learning_rate=1e30", "train.checkpoint_every=0", eval_every}), name);
    EXPECT_EQ(record.status, RunStatus::kDiverged);
    EXPECT_THAT(record.failure, HasSubstr("not finite"));
    EXPECT_EQ(record.steps, 1);
    EXPECT_FALSE(record.test.has_value());
    EXPECT_TRUE(record.val_curve.empty());
    EXPECT_EQ(read_record(folder(name).record()).status, RunStatus::kDiverged);
    EXPECT_TRUE(fs::is_empty(folder(name).checkpoints()));
  }
}

TEST_F(TinyTraining, NeverSavesAWeightThatIsNotFinite) {
  // Loss and gradient of the first step are fine; its update is not.
  const RunRecord record = run(kept_run({"train.learning_rate=1e38", "train.weight_decay=100.0",
                                         "train.checkpoint_every=1"}),
                               "run");
  EXPECT_EQ(record.status, RunStatus::kDiverged);
  EXPECT_EQ(record.failure, "a weight is not finite at step 1");
  EXPECT_TRUE(fs::is_empty(folder("run").checkpoints()));
}

// The lines of metrics.jsonl without what depends on the clock.
std::vector<Json> timeless_lines(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(parse_json(line, path));
    for (const char* speed : {"tokens_per_s", "examples_per_s"}) lines.back().erase(speed);
  }
  return lines;
}

TEST_F(TinyTraining, ResumedBetweenTwoLinesOfMetricsLogsTheSameMeans) {
  const RunConfig config = kept_run({"train.log_every=5"});
  const RunRecord whole = run(config, "whole");
  copy_killed_after("whole", "killed", 7);
  expect_same_end(whole, "whole", resume(config, "killed"), "killed");
  EXPECT_EQ(timeless_lines(folder("killed").metrics()), timeless_lines(folder("whole").metrics()));
}

TEST_F(TinyTraining, SaysWhetherTheTestSetWasSeen) {
  tasks::write_small_imdb(scratch_.file("data"), 15);
  const auto text = [](const char* validation) {
    return resolve_run(
        "text", "local", "small", 0, {},
        {validation, "task.length=32", "model.layers=1", "model.embed_dim=16", "model.qkv_dim=16",
         "model.mlp_dim=16", "train.steps=2", "train.batch_size=4", "train.eval_examples=0"});
  };
  const RunRecord seen = run(text("task.validation=test"), "seen");
  EXPECT_EQ(seen.validation, "test");
  EXPECT_EQ(seen.data_source, "imported");
  EXPECT_EQ(seen.test->num_examples, 30);
  EXPECT_EQ(seen.val->accuracy, seen.test->accuracy);
  const RunRecord unseen = run(text("task.validation=heldout"), "unseen");
  EXPECT_EQ(unseen.validation, "heldout");
  EXPECT_EQ(unseen.val->num_examples, 3) << "a tenth of train";
  EXPECT_EQ(unseen.test->num_examples, 30);
  EXPECT_EQ(unseen.data_hash, seen.data_hash);
  EXPECT_NE(unseen.fingerprint, seen.fingerprint);
}

TEST_F(TinyTraining, ClassWeightsAndSmoothingChangeTheTrainingLossAlone) {
  const auto weights_with = [&](const std::vector<std::string>& sets, const std::string& name) {
    return run(kept_run(sets, 0), name).weights_hash;
  };
  const std::string plain = weights_with({}, "plain");
  EXPECT_NE(weights_with({"train.class_weights=balanced"}, "balanced"), plain);
  EXPECT_NE(weights_with({"train.label_smoothing=0.1"}, "smooth"), plain);
  const ConfigTable train = *tiny_run().to_table().find("train")->as_table();
  EXPECT_EQ(train.find("class_weights"), nullptr) << "runs without it keep their hashes";
  EXPECT_THROW(tiny_run({"train.objective=masked", "train.class_weights=balanced"}), Error);
}

TEST_F(TinyTraining, TestsTheLastWeightsWhereTooFewExamplesChoose) {
  const RunConfig config = kept_run({"train.eval_every=1", "train.learning_rate=0.1",
                                     "train.test_checkpoint=best", "train.eval_examples=10"},
                                    0);
  const RunRecord record = run(config, "few");
  EXPECT_EQ(record.checkpoint, "last");
  EXPECT_EQ(record.test->step, record.steps);
  ASSERT_TRUE(record.warnings.has_value());
  EXPECT_THAT(record.warnings->back(), ::testing::HasSubstr("10 examples of val, fewer than 20"));
}

TEST_F(TinyTraining, TestsTheBestWeightsWhenAskedTo) {
  // Some seed among these has its best validation before the end.
  RunConfig config;
  RunRecord record;
  std::string name;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    config = kept_run(
        {"train.eval_every=1", "train.learning_rate=0.1", "train.test_checkpoint=best"}, seed);
    name = "run" + std::to_string(seed);
    record = run(config, name);
    if (record.best_val->step < record.steps) break;
  }
  ASSERT_LT(record.best_val->step, record.steps);
  EXPECT_EQ(record.checkpoint, "best");
  EXPECT_EQ(record.test->step, record.best_val->step);
  const auto task = config.make_task();
  const auto dataset = tasks::prepare_data(config.task_spec(), *task, scratch_.file("data"), true);
  const models::SequenceClassifier model(task->shape(), config.model_config, config.mixer_spec(),
                                         config.mixer_settings, 99);
  FlatParameters parameters(model);
  const auto progress = load_weights(folder(name).checkpoints() + "/best/model.safetensors",
                                     parameters, identities_of(record))
                            .progress;
  EXPECT_EQ(progress.step, record.best_val->step);
  EXPECT_EQ(weights_hash(parameters), record.weights_hash);
  const auto expected = evaluate(model, dataset.split("test"), task->shape(), 16, 0, {});
  EXPECT_EQ(record.test->loss, expected.summary.loss);
  EXPECT_EQ(record.test->accuracy, expected.summary.accuracy);
  const auto step_of = [&](const WeightsChoice& choice) {
    const LoadedRun loaded(folder(name).path, choice, ModelPrecision::kAsTrained);
    return loaded.weights.progress.step;
  };
  EXPECT_EQ(step_of({}), record.test->step) << "the weights that were tested";
  EXPECT_EQ(step_of({.checkpoint = "last"}), record.steps);

  // The best weights are damaged: the best of the others are tested, and the record says so.
  fs::resize_file(step_folder(name, record.best_val->step) + "/model.safetensors", 1000);
  const RunRecord other = resume(config, name);
  EXPECT_EQ(other.status, RunStatus::kDone);
  EXPECT_EQ(other.checkpoint, "best readable");
  ASSERT_TRUE(other.warnings.has_value());
  ASSERT_EQ(other.warnings->size(), 1u);
  EXPECT_THAT(other.warnings->front(),
              AllOf(HasSubstr("checkpoint skipped"),
                    HasSubstr("step_" + std::to_string(record.best_val->step) + "/")));
  EXPECT_NE(other.test->step, record.best_val->step);
  EXPECT_EQ(step_of({}), other.test->step);
  const auto of_tested =
      std::find_if(record.val_curve.begin(), record.val_curve.end(),
                   [&](const Evaluation& e) { return e.step == other.test->step; });
  ASSERT_NE(of_tested, record.val_curve.end());
  for (const Evaluation& e : record.val_curve) {
    if (e.step == record.best_val->step) continue;
    EXPECT_LE(e.accuracy, of_tested->accuracy);
  }
  EXPECT_FALSE(record.warnings.has_value());
}

}  // namespace
}  // namespace lra::training
