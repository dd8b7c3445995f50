#include "training/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/resources.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "training/budget.h"
#include "training/disk_space.h"
#include "training/memory_estimate.h"
#include "training/new_record.h"
#include "training/prepare_data.h"
#include "training/schedule.h"

namespace lra::training {
namespace {

void refuse_empty_splits(const tasks::Task& task, const tasks::Dataset& dataset) {
  for (const char* name : {"train", "val", "test"}) {
    if (task.split(dataset, name).size() > 0) continue;
    throw Error({.where = dataset.folder(),
                 .what = "split '" + std::string(name) + "' has no examples",
                 .expected = "at least one",
                 .advice = "prepare the data again"});
  }
}

TrainConfig with_steps(TrainConfig config, int64_t steps) {
  config.steps = steps;
  return config;
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
      stepper_(model_, parameters_, with_steps(config_.train, record_.planned_steps), config_.seed),
      guard_(config_.train),
      mlperf_log_(options_.mlperf_log ? folder_.mlperf_log() : ""),
      profiler_(options_.profile),
      started_(monotonic_seconds()) {
  refuse_empty_splits(*task_, dataset_);
  config_.train = with_steps(config_.train, record_.planned_steps);
  // Before anything is written: a run that is refused leaves nothing behind.
  if (config_.train.memory_check != "off") check_memory();
  options_.resume ? resume() : start();
  metrics_ = std::make_unique<MetricsLog>(folder_, progress_.step, options_.resume);
  if (progress_.step == 0) metrics_->settings(record_.config);
  mlperf_log_.begin(record_, progress_.step);
  const tasks::Split train = task_->split(dataset_, "train");
  loader_ = std::make_unique<BatchLoader>(
      train, shape_, tasks::BatchOrder(train.size(), config_.train.batch_size, config_.seed),
      progress_.step, config_.train.trim_padding, config_.train.prefetch, config_.train.accumulate);
}

void Trainer::say(const std::string& text) const {
  Progress({.description = "", .quiet = options_.quiet}).message(text);
}

void Trainer::check_memory() {
  record_.peak_resident_bytes = peak_resident_bytes();
  const MemoryEstimate estimate =
      estimate_memory(model_, stepper_, task_->split(dataset_, "train"), shape_, config_.train);
  const int64_t available = available_memory_bytes();
  if (config_.train.memory_check == "refuse") refuse_without_memory(estimate, available);
  record_.estimated_resident_bytes = estimate.peak_bytes;
  say("memory: about " + human_bytes(static_cast<uint64_t>(estimate.peak_bytes)) + ", of which " +
      human_bytes(static_cast<uint64_t>(estimate.extra_bytes)) + " are not taken yet; " +
      human_bytes(static_cast<uint64_t>(available)) +
      (estimate.extra_bytes > available ? " are available, which is too little"
                                        : " are available"));
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
    say("damaged checkpoint left aside: " + problem);
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
    record_.peak_resident_bytes = std::max(record_.peak_resident_bytes, before.peak_resident_bytes);
  }
  logged_seconds_ = record_.train_seconds;
  logged_tokens_ = progress_.tokens;
}

// A run that was stopped after its time was over is over as well.
bool Trainer::is_over() {
  if (progress_.step == config_.train.steps) return true;
  const std::string why = early_end(config_.train, progress_, seconds_so_far());
  if (why.empty()) return false;
  record_.ended_by = why;
  return true;
}

bool Trainer::evaluation_due(bool is_over) const {
  const int64_t step = progress_.step;
  if (step == 0 || progress_.last_eval_step == step) return false;
  return step % config_.train.eval_every == 0 || is_over;
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
  for (const std::string& warning : schedule_warnings(config_.train)) bar.message(warning);
  bar.update(progress_.step);
  const Trained trained = train(bar);
  if (!trained.failure.empty()) return finish(RunStatus::kDiverged, trained.failure);
  if (!trained.complete) {
    return save(false) ? finish(RunStatus::kStopped)
                       : finish(RunStatus::kDiverged, bad_weight_failure());
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
      return finish(RunStatus::kDiverged, "the test loss is not finite");
    case Outcome::kDone:
      break;
  }
  test_bar.finish();
  return finish(RunStatus::kDone);
}

Trainer::Trained Trainer::train(Progress& bar) {
  for (;;) {
    bool over = is_over();
    if (evaluation_due(over)) {
      const Outcome validation = validate(bar);
      if (validation == Outcome::kStopped) return {};
      if (validation == Outcome::kDiverged) {
        return {.failure = "the validation loss or a weight is not finite at step " +
                           std::to_string(progress_.step)};
      }
      over = over || is_over();  // this validation may have been the last one to wait for
    } else if (checkpoint_due() && !save(false)) {
      return {.failure = bad_weight_failure()};
    }
    if (over) return {.complete = true};
    if (stop_requested()) return {};
    if (take_save_request() && !save(false)) return {.failure = bad_weight_failure()};
    const std::string failure = train_step(bar);
    if (!failure.empty()) return {.failure = failure};
    bar.update();
  }
}

std::string Trainer::train_step(Progress& bar) {
  profiler_.next_step();
  RECORD_USER_SCOPE("training step");
  const Stopwatch watch;
  Health& health = progress_.health;
  const StepLoss loss =
      stepper_.gradients(traced("next batch", [&] { return loader_->next(); }), progress_.step);
  std::string fault = guard_.fault(loss.mean(), loss.gradient_norm, health);
  const bool updated = fault.empty();
  if (updated) {
    stepper_.update(progress_.step, progress_.step - health.skipped - health.undone,
                    loss.gradient_norm);
    if (!stepper_.weights_are_finite()) fault = "a weight is not finite";
  }
  if (fault.empty()) {
    guard_.passed(loss.mean(), loss.gradient_norm, health);
    progress_.mean.add(loss.loss_sum, loss.correct, loss.examples);
  } else {
    fault += " at step " + std::to_string(progress_.step + 1);
    if (!recover(fault, updated, bar)) return fault;
  }
  ++progress_.step;
  progress_.tokens += loss.tokens;
  record_.train_seconds += watch.seconds();
  if (progress_.step % config_.train.log_every == 0) log_step(bar, loss.gradient_norm);
  if (options_.histogram_every > 0 && progress_.step % options_.histogram_every == 0) {
    metrics_->histograms(parameters_, progress_.step);
  }
  return "";
}

bool Trainer::recover(const std::string& fault, bool updated, Progress& bar) {
  switch (guard_.remedy(progress_.health)) {
    case Remedy::kStop:
      return false;
    case Remedy::kSkip:
      if (updated) stepper_.undo_update();
      metrics_->bad_step(progress_.step + 1, "skip", fault);
      bar.message(fault + ": its update is left out");
      return true;
    case Remedy::kRollBack: {
      const int64_t to = roll_back();
      metrics_->bad_step(progress_.step + 1, "roll_back", fault);
      bar.message(fault + ": back to the weights of step " + std::to_string(to) +
                  ", on with the step after it");
      return true;
    }
  }
  return false;
}

int64_t Trainer::roll_back() {
  const int64_t to = last_scheduled_checkpoint(config_.train, progress_.step);
  int64_t updates = 0;  // in what is gone back to; steps may be undone that had undone others
  if (to > 0) {
    updates = to - checkpoints_.load(to, parameters_).health.undone;
  } else {
    const FlatParameters fresh(config_.make_model(shape_).parameter_list());
    parameters_.values.copy_(fresh.values);
    parameters_.m.zero_();
    parameters_.v.zero_();
  }
  progress_.health.undone = progress_.step + 1 - updates;
  return to;
}

void Trainer::log_step(Progress& bar, double gradient_norm) {
  if (progress_.mean.count == 0) return;  // every step since the last line was a bad one
  const double seconds = record_.train_seconds - logged_seconds_;
  const double tokens_per_s =
      static_cast<double>(progress_.tokens - logged_tokens_) / std::max(seconds, 1e-9);
  metrics_->train(progress_.step, progress_.mean, learning_rate(config_.train, progress_.step - 1),
                  tokens_per_s, gradient_norm);
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
  if (!stepper_.weights_are_finite()) return false;
  // The record first: it must know at least what the checkpoint knows.
  write_running_record();
  metrics_->sync();  // a resume from this checkpoint will not log these steps again
  const bool may_roll_back = config_.train.on_nonfinite == "roll_back";
  record_.weights_hash = checkpoints_.save(
      parameters_, progress_, is_best,
      may_roll_back ? last_scheduled_checkpoint(config_.train, progress_.step) : -1);
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

double Trainer::seconds_so_far() const { return earlier_seconds_ + monotonic_seconds() - started_; }

void Trainer::write_running_record() {
  record_.steps = progress_.step;
  record_.examples = progress_.step * config_.train.batch_size;
  record_.tokens = progress_.tokens;
  record_.train_tokens_per_s =
      record_.train_seconds > 0 ? static_cast<double>(progress_.tokens) / record_.train_seconds : 0;
  record_.total_seconds = seconds_so_far();
  const Health& health = progress_.health;
  if (health.skipped > 0) record_.skipped_steps = health.skipped;
  if (health.roll_backs > 0) {
    record_.roll_backs = health.roll_backs;
    record_.undone_steps = health.undone;
  }
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

std::string Trainer::bad_weight_failure() const {
  return "a weight is not finite at step " + std::to_string(progress_.step);
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
