// Runs in which some steps are bad: what is caught, what is saved, and what each policy makes of
// it.
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <set>
#include <thread>

#include "base/stop_flag.h"
#include "data/batch_order.h"
#include "io/safetensors.h"
#include "ops/adam.h"
#include "tasks/text/test_reviews.h"
#include "training/loop/test_trainer.h"
#include "training/ranks/test_ranks.h"
#include "training/run/make_model.h"
#include "training/settings/presets.h"

namespace lra::training {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 30, kTrain = 30, kBatch = 4, kPoisonedAt = 2;
constexpr char kMark = '~';  // in the first example of the training split and nowhere else

// One review has a token that no other has, and the run goes on from a checkpoint in which that
// token is poison: the steps whose batch holds the review are bad, and no other.
class BadSteps : public TinyTraining {
 protected:
  BadSteps() {
    tasks::write_small_imdb(scratch_.file("data"), kTrain / 2);
    const tasks::ReviewKey first{.split = 0, .label = 0, .id = 0, .rating = 1};
    write_text(scratch_.file("data") + "/aclImdb/" + tasks::review_path(first),
               std::string("bad") + kMark);
  }

  static RunConfig config_of(const std::string& policy, std::vector<std::string> sets = {}) {
    std::vector<std::string> all = {"task.validation=test",
                                    "task.length=32",
                                    "task.num_train=" + std::to_string(kTrain),
                                    "task.num_test=" + std::to_string(kTrain),
                                    "model.layers=1",
                                    "model.heads=2",
                                    "model.embed_dim=16",
                                    "model.qkv_dim=16",
                                    "model.mlp_dim=16",
                                    "train.batch_size=4",
                                    "train.steps=30",
                                    "train.eval_every=10",
                                    "train.checkpoint_every=1",
                                    "train.keep_checkpoints=1000",
                                    "train.warmup_steps=0",
                                    "train.log_every=1",
                                    "train.eval_examples=0",
                                    "train.max_roll_backs=9",
                                    "train.on_nonfinite=" + policy};
    all.insert(all.end(), sets.begin(), sets.end());
    return resolve_run("text", "transformer", "small", 0, {}, all);
  }

  // Steps, counted from 1, after the poisoning that take the marked example.
  static std::vector<int64_t> bad_steps() {
    std::vector<int64_t> bad, indices(kBatch);
    for (int64_t step = kPoisonedAt; step < kSteps; ++step) {
      BatchOrder(kTrain, kBatch, 0).fill(step, indices);
      if (std::find(indices.begin(), indices.end(), 0) != indices.end()) bad.push_back(step + 1);
    }
    return bad;
  }

  // The beginning of a run that has poison in its checkpoint; resume() goes on with it.
  void begin_poisoned(const RunConfig& config, const std::string& name) const {
    (void)run(config, name + "-healthy");
    copy_killed_after(name + "-healthy", name, kPoisonedAt);
    FlatParameters parameters = parameters_of(config);
    CheckpointStore store = store_of(folder(name));
    const TrainProgress progress = store.load(kPoisonedAt, parameters);
    poison_token(parameters, kMark + 1);
    (void)store.save(parameters, progress, false);
  }
  FlatParameters parameters_of(const RunConfig& config) const {
    return FlatParameters(make_model(config, config.make_task()->shape()));
  }
  std::vector<int64_t> logged(const std::string& name, const std::string& kind) const {
    std::vector<double> losses;
    std::vector<int64_t> steps;
    for (const auto& [line_kind, step] : metric_lines(name, &losses)) {
      if (line_kind == kind) steps.push_back(step);
    }
    return steps;
  }
  void expect_finite_checkpoints(const RunConfig& config, const std::string& name,
                                 int64_t last) const {
    FlatParameters parameters = parameters_of(config);
    const CheckpointStore store = store_of(folder(name));
    for (int64_t step = 1; step <= last; ++step) {
      if (!fs::exists(step_folder(name, step))) continue;
      (void)store.load(step, parameters);
      for (const at::Tensor* t : {&parameters.values, &parameters.m, &parameters.v}) {
        EXPECT_TRUE(std::isfinite(ops::gradient_norm(*t))) << "step " << step;
      }
    }
    EXPECT_FALSE(fs::exists(step_folder(name, last + 1)));
  }
};

TEST_F(BadSteps, EndTheRunInTheStepTheyOccur) {
  const RunConfig config = config_of("stop");
  begin_poisoned(config, "run");
  const RunRecord record = resume(config, "run");
  const int64_t first = bad_steps().front();
  EXPECT_EQ(record.status, RunStatus::kDiverged);
  EXPECT_EQ(record.failure, "the loss is not finite at step " + std::to_string(first));
  EXPECT_EQ(record.steps, first - 1);
  expect_finite_checkpoints(config, "run", first - 1);
}

TEST_F(BadSteps, AreLeftOut) {
  const RunConfig config = config_of("skip");
  begin_poisoned(config, "run");
  const RunRecord record = resume(config, "run");
  EXPECT_EQ(record.status, RunStatus::kDone);
  EXPECT_EQ(record.skipped_steps, static_cast<int64_t>(bad_steps().size()));
  EXPECT_FALSE(record.roll_backs.has_value());
  EXPECT_THAT(logged("run", "skip"), ElementsAreArray(bad_steps()));
  EXPECT_EQ(logged("run", "train").size(), kSteps - bad_steps().size());
  expect_finite_checkpoints(config, "run", kSteps);
}

TEST_F(BadSteps, SendTheRunBackToItsLastScheduledCheckpoint) {
  const RunConfig config = config_of("roll_back", {"train.checkpoint_every=2"});
  begin_poisoned(config, "run");
  const RunRecord record = resume(config, "run");
  std::set<int64_t> undone;
  for (const int64_t step : bad_steps()) {
    for (int64_t back = step; back > (step - 1) / 2 * 2; --back) undone.insert(back);
  }
  EXPECT_EQ(record.status, RunStatus::kDone);
  EXPECT_EQ(record.roll_backs, static_cast<int64_t>(bad_steps().size()));
  EXPECT_EQ(record.undone_steps, static_cast<int64_t>(undone.size()));
  EXPECT_FALSE(record.skipped_steps.has_value());
  EXPECT_THAT(logged("run", "roll_back"), ElementsAreArray(bad_steps()));
  expect_finite_checkpoints(config, "run", kSteps);
}

TEST_F(BadSteps, AreTheSameToARunThatWasKilledAnywhere) {
  for (const char* policy : {"skip", "roll_back"}) {
    const RunConfig config = config_of(policy);
    const std::string whole_name = std::string("whole-") + policy;
    begin_poisoned(config, whole_name);
    const RunRecord whole = resume(config, whole_name);
    const int64_t first = bad_steps().front();
    for (const int64_t step : {first - 1, first, first + 1, kSteps - 1}) {
      SCOPED_TRACE(testing::Message() << policy << ", killed after step " << step);
      const std::string name = std::string(policy) + std::to_string(step);
      copy_killed_after(whole_name, name, step);
      const RunRecord record = resume(config, name);
      expect_same_end(whole, whole_name, record, name);
      EXPECT_EQ(record.skipped_steps, whole.skipped_steps);
      EXPECT_EQ(record.undone_steps, whole.undone_steps);
      std::vector<double> losses, whole_losses;
      EXPECT_EQ(metric_lines(name, &losses), metric_lines(whole_name, &whole_losses));
    }
  }
}

// Checkpoints that a signal asks for come at any step; going back to them would give other weights.
TEST_F(BadSteps, SendTheRunFurtherBackPastADamagedCheckpoint) {
  const RunConfig config = config_of("roll_back", {"train.checkpoint_every=2"});
  begin_poisoned(config, "whole");
  const RunRecord whole = resume(config, "whole");
  const std::vector<int64_t> bad = bad_steps();
  // A bad step two after a scheduled checkpoint, to which it would go back.
  const auto step = std::find_if(bad.begin(), bad.end(), [](int64_t s) { return s % 2 == 0; });
  ASSERT_NE(step, bad.end());
  const int64_t target = *step - 2;
  copy_killed_after("whole", "damaged", target);
  FlatParameters parameters = parameters_of(config);
  CheckpointStore store = store_of(folder("damaged"));
  TrainProgress progress = store.load(target, parameters);
  ++progress.step;  // as if a signal had asked for it
  (void)store.save(parameters, progress, false);
  fs::resize_file(step_folder("damaged", target) + "/model.safetensors", 1000);
  const RunRecord record = resume(config, "damaged");
  EXPECT_EQ(record.status, RunStatus::kDone);
  EXPECT_GT(record.undone_steps, whole.undone_steps);
  const auto is_told =
      AllOf(HasSubstr("checkpoint skipped"), HasSubstr("step_" + std::to_string(target)));
  EXPECT_THAT(record.warnings.value(), testing::Contains(is_told));
  EXPECT_THAT(whole.warnings.value(), testing::ElementsAre(HasSubstr("task.length=32 cuts")));
}

// The ranks of a process that is cut off when it waits for the others the given number of times.
class CutOff final : public Ranks {
 public:
  CutOff(Ranks& whole, int64_t waits)
      : Ranks(whole.rank(), whole.count()), whole_(whole), waits_(waits) {}
  int64_t count_on_this_machine() const override { return whole_.count_on_this_machine(); }
  void begin_sum(const at::Tensor& x) override { whole_.begin_sum(x); }
  void wait() override {
    whole_.wait();  // whatever follows: nothing may write to tensors that are gone
    if (!is_first() && waits_-- == 0) throw LostRank(name(), "is cut off");
  }
  int64_t waits_left() const { return waits_; }

 private:
  Ranks& whole_;
  int64_t waits_;
};

// A roll-back has overwritten the weights when the first rank learns that another is gone.
TEST_F(BadSteps, ComeToTheSameEndWhereverARankIsLost) {
  const RunConfig config = config_of("roll_back", {"train.checkpoint_every=2"});
  begin_poisoned(config, "poisoned");
  const auto resume_two = [&](const std::string& name, int64_t waits) {
    int64_t waits_left = 0;
    try {
      on_ranks(2, [&](Ranks& whole) {
        CutOff ranks(whole, waits);
        TrainOptions options;
        options.data_root = scratch_.file("data");
        options.resume = true;
        options.quiet = true;
        (void)Trainer(prepare_run(config, folder(name), options, ranks), ranks).run();
        if (!ranks.is_first()) waits_left = ranks.waits_left();
      });
    } catch (const Error&) {
    }
    return waits - waits_left;
  };
  copy_killed_after("poisoned", "whole", kPoisonedAt);
  const int64_t waits = resume_two("whole", 1'000'000);
  const RunRecord whole = read_record(folder("whole").record());
  EXPECT_GT(whole.roll_backs, 0);
  for (int64_t lost_at = 8; lost_at < waits; lost_at += 4) {
    const std::string name = "lost" + std::to_string(lost_at);
    copy_killed_after("poisoned", name, kPoisonedAt);
    (void)resume_two(name, lost_at);
    (void)resume_two(name, 1'000'000);
    expect_same_end(whole, "whole", read_record(folder(name).record()), name);
  }
}

TEST_F(BadSteps, AreTheSameWhateverElseIsSaved) {
  begin_poisoned(config_of("roll_back", {"train.checkpoint_every=2"}), "whole");
  // The run continues with the same settings, but keeps as few checkpoints as possible.
  const RunConfig config =
      config_of("roll_back", {"train.checkpoint_every=2", "train.keep_checkpoints=1"});
  RunRecord before = read_record(folder("whole").record());
  FlatParameters parameters = parameters_of(config);
  const TrainProgress progress = store_of(folder("whole")).load(kPoisonedAt, parameters);
  const RunRecord unpoisoned = run(config, "unpoisoned");
  before.fingerprint = unpoisoned.fingerprint;
  before.config_hash = unpoisoned.config_hash;
  write_record(before, folder("whole").record());
  (void)store_of(folder("whole")).save(parameters, progress, false);
  copy_killed_after("whole", "saved", kPoisonedAt);
  const RunRecord whole = resume(config, "whole");
  std::atomic<bool> ended = false;
  std::thread signaller([&] {
    while (!ended) {
      raise_stop_flag(SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  const RunRecord saved = resume(config, "saved");
  ended = true;
  signaller.join();
  (void)take_save_request();
  expect_same_end(whole, "whole", saved, "saved");
}

TEST_F(BadSteps, LeaveNoTraceWhereThereAreNone) {
  const RunRecord stop = run(config_of("stop"), "stop");
  for (const char* policy : {"skip", "roll_back"}) {
    const RunRecord record = run(config_of(policy), policy);
    EXPECT_EQ(record.weights_hash, stop.weights_hash);
    EXPECT_FALSE(record.skipped_steps || record.roll_backs || record.undone_steps);
    for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
      // The header names the owner of the weights.
      const auto one = SafetensorsFile::open(step_folder(policy, kSteps) + file);
      const auto other = SafetensorsFile::open(step_folder("stop", kSteps) + file);
      ASSERT_EQ(one.tensors().size(), other.tensors().size());
      for (const TensorView& tensor : one.tensors()) {
        EXPECT_TRUE(std::ranges::equal(tensor.data, other.find(tensor.name)->data)) << tensor.name;
      }
    }
  }
}

TEST_F(BadSteps, WithoutEndEndTheRun) {
  // Every update is too large for float32.
  const std::vector<std::string> exploding = {
      "train.learning_rate=1e38", "train.weight_decay=100.0", "train.schedule=constant"};
  const RunRecord skipped = run(config_of("skip", exploding), "skip");
  EXPECT_EQ(skipped.status, RunStatus::kDiverged);
  EXPECT_EQ(skipped.failure, "a weight is not finite at step 11");
  EXPECT_EQ(skipped.skipped_steps, 10);
  expect_finite_checkpoints(config_of("skip"), "skip", 10);

  const RunRecord rolled = run(config_of("roll_back", exploding), "roll_back");
  EXPECT_EQ(rolled.status, RunStatus::kDiverged);
  EXPECT_EQ(rolled.failure, "a weight is not finite at step 10");
  EXPECT_EQ(rolled.roll_backs, 9);
  expect_finite_checkpoints(config_of("roll_back"), "roll_back", 9);
}

TEST_F(BadSteps, BeforeTheFirstCheckpointSendTheRunBackToTheWeightsOfItsSeed) {
  std::vector<std::string> sets = {"train.learning_rate=1e38", "train.weight_decay=100.0",
                                   "train.schedule=constant", "train.max_roll_backs=1",
                                   "train.checkpoint_every=0"};
  const RunConfig config = config_of("roll_back", sets);
  const RunRecord record = run(config, "run");
  EXPECT_EQ(record.failure, "a weight is not finite at step 2");
  EXPECT_EQ(record.undone_steps, 1);
}

TEST_F(BadSteps, MayBeSpikes) {
  // The learning rate jumps when the cosine begins again; any factor near 1 finds some spike.
  const RunRecord record = run(config_of("skip", {"train.spike_factor=1.01", "train.steps=80",
                                                  "train.max_skips=30", "train.eval_every=80"}),
                               "run");
  EXPECT_EQ(record.status, RunStatus::kDone);
  ASSERT_TRUE(record.skipped_steps.has_value());
  EXPECT_GT(*record.skipped_steps, 0);
  for (const int64_t step : logged("run", "skip")) EXPECT_GT(step, 50);
}

}  // namespace
}  // namespace lra::training
