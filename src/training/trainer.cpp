#include "training/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/resources.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "ops/adam.h"
#include "training/disk_space.h"
#include "training/fairness.h"
#include "training/prepare_data.h"
#include "training/schedule.h"

namespace lra::training {
namespace {

std::string fingerprint(const RunRecord& record) {
  return to_hex(
      hash128(record.config_hash + record.data_hash + std::to_string(record.task_version)));
}

RunRecord new_record(const RunConfig& config, const tasks::Task& task,
                     const tasks::Dataset& dataset, const Provenance& provenance) {
  RunRecord record;
  const Fairness fairness = judge(config);
  record.task = config.task;
  record.task_title = config.task_spec().title;
  record.task_version = config.task_spec().version;
  record.model = config.model;
  record.model_title = config.mixer_spec().title;
  record.preset = config.preset;
  record.seed = config.seed;
  record.validation = task.validation();
  record.checkpoint = config.train.test_checkpoint;
  record.data_source = dataset.manifest().source;
  record.data_hash = dataset.hash();
  record.config = config.to_table();
  record.config_hash = to_hex(hash128(canonical_text(record.config)));
  record.fingerprint = fingerprint(record);
  record.num_parameters = fairness.parameters;
  record.base_parameters = fairness.base_parameters;
  record.division = fairness.division;
  record.division_reason = fairness.reason;
  record.planned_steps = config.train.steps;
  record.preset_steps = preset_steps(config);
  record.test_split_examples = task.split(dataset, "test").size();
  record.provenance = provenance;
  return record;
}

// Gives `part` a name in the profiler's trace; costs nothing without one.
template <typename Part>
auto traced(const char* name, const Part& part) {
  RECORD_USER_SCOPE(name);
  return part();
}

void refuse_empty_splits(const tasks::Task& task, const tasks::Dataset& dataset) {
  for (const char* name : {"train", "val", "test"}) {
    if (task.split(dataset, name).size() > 0) continue;
    throw Error({.where = dataset.folder(),
                 .what = "split '" + std::string(name) + "' has no examples",
                 .expected = "at least one",
                 .advice = "prepare the data again"});
  }
}

}  // namespace

Trainer::Trainer(RunConfig config, RunFolder folder, TrainOptions options)
    : config_(std::move(config)),
      folder_(std::move(folder)),
      options_(std::move(options)),
      task_(config_.make_task()),
      dataset_(prepare_data(config_.task_spec(), *task_, options_.data_root, options_.quiet)),
      shape_(task_->shape()),
      model_(config_.make_model(shape_)),
      parameters_(model_.parameter_list()),
      checkpoints_(folder_.checkpoints(), config_.train.keep_checkpoints),
      record_(new_record(config_, *task_, dataset_, options_.provenance)),
      mlperf_log_(options_.mlperf_log ? folder_.mlperf_log() : ""),
      profiler_(options_.profile),
      started_(monotonic_seconds()) {
  refuse_empty_splits(*task_, dataset_);
  options_.resume ? resume() : start();
  metrics_ = std::make_unique<MetricsLog>(folder_, progress_.step, options_.resume);
  if (progress_.step == 0) metrics_->settings(record_.config);
  mlperf_log_.begin(record_, progress_.step);
  const tasks::Split train = task_->split(dataset_, "train");
  loader_ = std::make_unique<BatchLoader>(
      train, shape_, tasks::BatchOrder(train.size(), config_.train.batch_size, config_.seed),
      progress_.step, config_.train.trim_padding, config_.train.prefetch);
}

void Trainer::start() {
  make_folder(folder_.checkpoints());
  refuse_without_room(folder_, parameters_, config_.train, progress_.step);
  write_file_atomically(folder_.config(), to_toml(record_.config));
  write_running_record();
}

void Trainer::resume() {
  std::vector<std::string> problems;
  const auto found = checkpoints_.load_latest(parameters_, &problems);
  for (const std::string& problem : problems) {
    Progress({.description = "", .quiet = options_.quiet})
        .message("damaged checkpoint left aside: " + problem);
  }
  if (!found && !problems.empty()) {
    throw Error({.where = folder_.checkpoints(),
                 .what = "no checkpoint can be read (" + problems.front() + ")",
                 .expected = "",
                 .advice = "start a new run with another --out"});
  }
  const RunRecord before = read_record(folder_.record());
  if (before.fingerprint != record_.fingerprint) {
    throw Error({.where = folder_.path,
                 .what = before.data_hash == record_.data_hash
                             ? "the task or config.toml changed since this run began"
                             : "the data changed since this run began",
                 .expected = "data " + before.data_hash + ", settings " + before.config_hash,
                 .advice = "start a new run with another --out"});
  }
  remove_temporaries(folder_.path);
  // Stopped before the first checkpoint: begin again, which is what going on means then.
  if (found) {
    progress_ = *found;
    checkpoints_.repair_links(progress_);
    refuse_without_room(folder_, parameters_, config_.train, progress_.step);
  }
  for (const Evaluation& evaluation : before.val_curve) {
    if (evaluation.step <= progress_.last_eval_step) record_.val_curve.push_back(evaluation);
  }
  if (found) {
    record_.train_seconds = before.train_seconds;
    earlier_seconds_ = before.total_seconds;
    record_.peak_resident_bytes = before.peak_resident_bytes;
  }
  logged_seconds_ = record_.train_seconds;
  logged_tokens_ = progress_.tokens;
}

bool Trainer::evaluation_due() const {
  const int64_t step = progress_.step;
  if (step == 0 || progress_.last_eval_step == step) return false;
  return step % config_.train.eval_every == 0 || step == config_.train.steps;
}

bool Trainer::checkpoint_due() const {
  const int64_t every = config_.train.checkpoint_every;
  return every > 0 && progress_.step > 0 && progress_.step % every == 0;
}

RunRecord Trainer::run() {
  Progress bar({.description = config_.task + " " + config_.model,
                .total = config_.train.steps,
                .unit = "step",
                .quiet = options_.quiet});
  bar.update(progress_.step);
  for (;;) {
    if (evaluation_due()) {
      const Outcome validation = validate(bar);
      if (validation == Outcome::kStopped) break;
      if (validation == Outcome::kDiverged) return diverged("validation loss or a weight");
    } else if (checkpoint_due() && !save(false)) {
      return diverged("a weight");
    }
    if (progress_.step == config_.train.steps || stop_requested()) break;
    if (take_save_request() && !save(false)) return diverged("a weight");
    if (!train_step(bar)) return diverged("loss or gradient");
    bar.update();
  }
  if (progress_.last_eval_step < config_.train.steps) {
    return save(false) ? finish(RunStatus::kStopped) : diverged("a weight");
  }
  bar.finish();
  const int64_t limit = config_.train.test_examples, size = task_->split(dataset_, "test").size();
  Progress test_bar({.description = "test",
                     .total = limit > 0 ? std::min(limit, size) : size,
                     .unit = "ex",
                     .quiet = options_.quiet});
  switch (test(test_bar)) {
    case Outcome::kStopped:
      return finish(RunStatus::kStopped);
    case Outcome::kDiverged:
      return diverged("test loss");
    case Outcome::kDone:
      break;
  }
  test_bar.finish();
  return finish(RunStatus::kDone);
}

bool Trainer::train_step(Progress& bar) {
  profiler_.next_step();
  RECORD_USER_SCOPE("training step");
  const Stopwatch watch;
  const Batch batch = traced("next batch", [&] { return loader_->next(); });
  const models::StepRandom random{.training = true, .seed = config_.seed, .step = progress_.step};
  parameters_.zero_gradients();
  const at::Tensor logits = traced("forward", [&] { return model_.forward(batch.input, random); });
  const at::Tensor loss = at::cross_entropy_loss(logits, batch.labels_B);
  traced("backward", [&] { loss.backward(); });
  const double norm = ops::gradient_norm(parameters_.gradients), loss_value = loss.item<double>();
  if (!std::isfinite(norm) || !std::isfinite(loss_value)) return false;
  const TrainConfig& t = config_.train;
  const double clip = t.clip_norm > 0 && norm > t.clip_norm ? t.clip_norm / norm : 1.0;
  const double rate = learning_rate(t, progress_.step);
  traced("update", [&] {
    ops::adam_step(parameters_.values, parameters_.gradients, parameters_.m, parameters_.v,
                   {rate, t.beta1, t.beta2, t.eps, t.weight_decay}, progress_.step, clip);
  });
  const int64_t count = batch.labels_B.size(0);
  progress_.mean.add(loss_value * static_cast<double>(count),
                     logits.argmax(1).eq(batch.labels_B).sum().item<int64_t>(), count);
  ++progress_.step;
  progress_.tokens += batch.num_tokens;
  record_.train_seconds += watch.seconds();
  if (progress_.step % t.log_every == 0) log_step(bar, rate, norm);
  if (options_.histogram_every > 0 && progress_.step % options_.histogram_every == 0) {
    metrics_->histograms(parameters_, progress_.step);
  }
  return true;
}

void Trainer::log_step(Progress& bar, double rate, double gradient_norm) {
  const double seconds = record_.train_seconds - logged_seconds_;
  const double tokens_per_s =
      static_cast<double>(progress_.tokens - logged_tokens_) / std::max(seconds, 1e-9);
  metrics_->train(progress_.step, progress_.mean, rate, tokens_per_s, gradient_norm);
  bar.set_postfix(
      "loss=" + fixed(progress_.mean.loss(), 3) + ", acc=" + fixed(progress_.mean.accuracy(), 3) +
      ", " + thousands(static_cast<int64_t>(tokens_per_s)) + " tok/s, " +
      human_bytes(static_cast<uint64_t>(resident_bytes())) +
      (record_.val_curve.empty() ? "" : ", val=" + fixed(record_.val_curve.back().accuracy, 3)));
  logged_seconds_ = record_.train_seconds;
  logged_tokens_ = progress_.tokens;
  progress_.mean = {};
}

Trainer::Outcome Trainer::validate(Progress& bar) {
  const tasks::Split split = task_->split(dataset_, "val");
  auto result = evaluate(model_, split, shape_, config_.train.eval_batch_size,
                         config_.train.eval_examples, {});
  if (result.stopped) return Outcome::kStopped;
  if (!std::isfinite(result.summary.loss)) return Outcome::kDiverged;
  result.summary.step = progress_.step;
  record_.val_curve.push_back(result.summary);
  metrics_->evaluation("val", result.summary);
  mlperf_log_.evaluation("val", result.summary);
  bar.message("step " + thousands(progress_.step) + ": validation accuracy " +
              percent(result.summary.accuracy) + ", loss " + fixed(result.summary.loss, 4) +
              " on " + thousands(result.summary.num_examples) + " examples");
  progress_.last_eval_step = progress_.step;
  const bool is_best = result.summary.accuracy > progress_.best_accuracy;
  if (is_best) {
    progress_.best_accuracy = result.summary.accuracy;
    progress_.best_step = progress_.step;
  }
  return save(is_best) ? Outcome::kDone : Outcome::kDiverged;
}

bool Trainer::save(bool is_best) {
  // A sum over all weights is finite only when every one of them is.
  if (!std::isfinite(ops::gradient_norm(parameters_.values))) return false;
  // The record first: it must know at least what the checkpoint knows.
  write_running_record();
  metrics_->sync();  // a resume from this checkpoint will not log these steps again
  record_.weights_hash = checkpoints_.save(parameters_, progress_, is_best);
  return true;
}

Trainer::Outcome Trainer::test(Progress& bar) {
  const auto& last = record_.val_curve.back();
  const bool last_weights =
      config_.train.test_checkpoint == "last" || progress_.best_step == progress_.step;
  const tasks::Split split = task_->split(dataset_, "test");
  if (task_->validation() == "test" && last_weights && last.num_examples == split.size()) {
    record_.test = last;  // the same weights on the same examples
    return Outcome::kDone;
  }
  if (!last_weights) checkpoints_.load_best(progress_, parameters_);
  auto result = evaluate(model_, split, shape_, config_.train.eval_batch_size,
                         config_.train.test_examples, [&](int64_t count) { bar.update(count); });
  if (result.stopped) return Outcome::kStopped;
  if (!std::isfinite(result.summary.loss)) return Outcome::kDiverged;
  result.summary.step = last_weights ? progress_.step : progress_.best_step;
  record_.test = result.summary;
  return Outcome::kDone;
}

void Trainer::write_running_record() {
  record_.steps = progress_.step;
  record_.examples = progress_.step * config_.train.batch_size;
  record_.tokens = progress_.tokens;
  record_.train_tokens_per_s =
      record_.train_seconds > 0 ? static_cast<double>(progress_.tokens) / record_.train_seconds : 0;
  record_.total_seconds = earlier_seconds_ + monotonic_seconds() - started_;
  record_.peak_resident_bytes = std::max(record_.peak_resident_bytes, peak_resident_bytes());
  if (!record_.val_curve.empty()) {
    record_.val = record_.val_curve.back();
    record_.best_val = record_.val_curve.front();
    for (const Evaluation& e : record_.val_curve) {
      if (e.accuracy > record_.best_val->accuracy) record_.best_val = e;
    }
  }
  write_record(record_, folder_.record());
}

RunRecord Trainer::diverged(const std::string& what) {
  return finish(RunStatus::kDiverged,
                what + " is not finite at step " + std::to_string(progress_.step));
}

RunRecord Trainer::finish(RunStatus status, const std::string& failure) {
  record_.status = status;
  record_.failure = failure;
  if (status == RunStatus::kDone) {
    record_.weights_hash = weights_hash(parameters_);
    for (const tasks::Baseline& baseline : task_->baselines(dataset_)) {
      record_.baselines[baseline.name] = baseline.accuracy;
    }
  }
  record_.provenance.finished_utc = utc_now();
  metrics_->sync();
  write_running_record();
  if (status == RunStatus::kDone) {
    // Not before: a run that is killed here is tested, and would log it, once more.
    metrics_->evaluation("test", *record_.test);
    mlperf_log_.evaluation("test", *record_.test);
    metrics_->sync();
  }
  if (status != RunStatus::kStopped) metrics_->ended(status == RunStatus::kDone);
  mlperf_log_.end(status, progress_.step);
  if (!profiler_.finish()) {
    Progress({.quiet = options_.quiet}).message("no trace: the run ended before its third step");
  }
  return record_;
}

}  // namespace lra::training
