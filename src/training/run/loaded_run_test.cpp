#include "training/run/loaded_run.h"

#include <gmock/gmock.h>

#include "data/test_fixtures.h"
#include "training/loop/test_trainer.h"

namespace lra::training {
namespace {

using ::testing::HasSubstr;

class LoadedRunWeights : public TinyTraining {
 protected:
  std::string weights(const std::string& name) const {
    return folder(name).checkpoints() + "/latest/model.safetensors";
  }
  LoadedRun load(const std::string& name, const WeightsChoice& choice) const {
    return {folder(name).path, choice, ModelPrecision::kAsTrained};
  }
};

// Models whose parameters have the same names and shapes, and runs that differ in nothing that can
// be seen in the weights.
TEST_F(LoadedRunWeights, OfAnotherRunAreTakenOnlyWhenAskedFor) {
  const RunRecord own = run(tiny_run(), "own");
  EXPECT_EQ(load("own", {}).foreign_weights(), "");
  EXPECT_EQ(load("own", {.checkpoint = weights("own")}).foreign_weights(), "");
  EXPECT_EQ(load("own", {.foreign = true}).foreign_weights(), "");
  const std::vector<std::pair<RunConfig, std::string>> others = {
      {tiny_run({}, "local"), "model 'local' instead of 'transformer'"},
      {tiny_run({}, "transformer", 4), "seed 4 instead of 3"},
      {tiny_run({"train.learning_rate=1e-3"}), "settings "},
      {tiny_run({"task.max_depth=5"}), "settings "}};
  for (size_t i = 0; i < others.size(); ++i) {
    const auto& [config, what] = others[i];
    const std::string name = "other" + std::to_string(i);
    TrainOptions options;
    options.data_root = scratch_.file("data" + std::to_string(i));
    fs::create_directories(options.data_root);
    options.quiet = true;
    const RunRecord other = Trainer(prepare_run(config, folder(name), options)).run();
    EXPECT_THAT(error_of([&] { load("own", {.checkpoint = weights(name)}); }),
                AllOf(HasSubstr("another run: "), HasSubstr(what), HasSubstr("--foreign-weights")))
        << i;
    const LoadedRun taken = load("own", {.checkpoint = weights(name), .foreign = true});
    EXPECT_EQ(weights_hash(taken.parameters), other.weights_hash);
    EXPECT_EQ(taken.foreign_weights(), text_of(other));
    // Weights in the run's own folder are refused as well, unless `foreign` is set.
    fs::create_directories(folder("copy").checkpoints());
    fs::copy(folder("own").path, folder("copy").path,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing |
                 fs::copy_options::copy_symlinks);
    fs::copy(weights(name), weights("copy"), fs::copy_options::overwrite_existing);
    EXPECT_THAT(error_of([&] { load("copy", {}); }), HasSubstr(what));
    fs::remove_all(folder("copy").path);
  }
}

TEST_F(LoadedRunWeights, AreReadOnOtherDataOnlyWhereItIs) {
  (void)run(tiny_run(), "own");
  const LoadedRun loaded = load("own", {});
  RunDataOptions options{.root = "", .quiet = true};
  EXPECT_EQ(open_run_data(loaded, options).hash(), loaded.stored.record.data_hash)
      << "the root is remembered";
  options = {.root = scratch_.file("none"), .other_data = true, .quiet = true};
  EXPECT_THAT(error_of([&] { open_run_data(loaded, options); }), HasSubstr("no data for listops"));
  EXPECT_FALSE(fs::exists(options.root)) << "data nobody named is not generated";
  // Longer expressions than the run was trained on.
  const auto task = tiny_run({"task.length=60", "task.max_length=60"}).make_task();
  QuietProgress progress;
  task->make({.out = options.root, .seed = 1, .num_train = 4, .num_val = 4, .num_test = 9},
             progress);
  EXPECT_EQ(
      evaluate_run(loaded, open_run_data(loaded, options), "test", 0, true).summary.num_examples,
      9);
  options.other_data = false;
  EXPECT_THAT(error_of([&] { open_run_data(loaded, options); }), HasSubstr("max_length=60"));
}

TEST_F(LoadedRunWeights, AreThoseOfTheStepThatTheirFolderStandsFor) {
  const RunRecord own = run(kept_run(), "own");
  const std::string checkpoints = folder("own").checkpoints();
  const int64_t other = own.best_val->step == 4 ? 8 : 4;
  for (const std::string name : {"best", "latest"}) {
    const auto link = fs::read_symlink(checkpoints + "/" + name);
    fs::remove(checkpoints + "/" + name);
    fs::copy(step_folder("own", other), checkpoints + "/" + name, fs::copy_options::recursive);
    EXPECT_THAT(error_of([&] { load("own", {.checkpoint = name}); }),
                AllOf(HasSubstr("of step " + std::to_string(other)), HasSubstr("record.json says")))
        << name;
    EXPECT_THAT(check_checkpoints_beside(own, folder("own").record()), testing::SizeIs(1));
    fs::remove_all(checkpoints + "/" + name);
    fs::create_directory_symlink(link, checkpoints + "/" + name);
  }
  EXPECT_THAT(check_checkpoints_beside(own, folder("own").record()), testing::IsEmpty());
  EXPECT_EQ(load("own", {.checkpoint = "best"}).weights.progress.step, own.best_val->step);
}

TEST_F(LoadedRunWeights, AreThoseThatTheRecordHasTheHashOf) {
  RunRecord own = run(tiny_run(), "own");
  own.weights_hash = std::string(32, '0');
  write_record(own, folder("own").record());
  EXPECT_THAT(error_of([&] { load("own", {}); }), HasSubstr(own.weights_hash));
  EXPECT_THAT(check_checkpoints_beside(own, folder("own").record()),
              testing::Each(HasSubstr("as record.json says")));
  EXPECT_EQ(load("own", {.foreign = true}).foreign_weights(), "") << "its own, by name";
}

TEST_F(LoadedRunWeights, OfARunThatIsUnderWayMayBeAheadOfItsRecord) {
  RunRecord own = run(kept_run(), "own");
  own.status = RunStatus::kRunning;
  own.test.reset();
  own.steps = 4;
  own.examples = 32;
  own.tokens = 0;
  own.train_seconds = own.train_tokens_per_s = 0;
  own.train_examples_per_s.reset();
  own.val_curve.resize(1);
  own.val = own.best_val = own.val_curve[0];
  write_record(own, folder("own").record());
  EXPECT_EQ(load("own", {}).weights.progress.step, 12);
}

// A card or a record next to them may be of another step.
TEST_F(LoadedRunWeights, ThatWereExportedAreCalledByTheirStep) {
  const RunRecord own = run(kept_run(), "own");
  const auto exported = [&](int64_t step) {
    const std::string name = "exported" + std::to_string(step);
    fs::create_directories(folder(name).path);
    for (const std::string& file : {folder("own").config(), folder("own").record()}) {
      fs::copy(file, folder(name).path);
    }
    fs::copy(step_folder("own", step) + "/model.safetensors", folder(name).path);
    return name;
  };
  const std::string tested = exported(own.test->step), other = exported(own.test->step - 4);
  EXPECT_EQ(load(tested, {}).checkpoint, tested_checkpoint(own));
  EXPECT_EQ(load(other, {}).checkpoint, "step_" + std::to_string(own.test->step - 4));
  EXPECT_THAT(error_of([&] { load(other, {.checkpoint = "step_1"}); }),
              HasSubstr("holds only the weights of step "));
  EXPECT_THAT(check_checkpoints_beside(own, folder(tested).record()), testing::IsEmpty());
  EXPECT_THAT(check_checkpoints_beside(own, folder(other).record()),
              testing::ElementsAre(HasSubstr("which the accuracy in record.json is of")));
}

}  // namespace
}  // namespace lra::training
