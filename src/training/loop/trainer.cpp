#include "training/loop/trainer.h"
#include "tasks/data_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/counted.h"
#include "base/parallel.h"
#include "base/resources.h"
#include "base/text_format.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "mixers/python_layer.h"
#include "records/analysis_record.h"
#include "training/loop/breakdown.h"
#include "training/run/loaded_run.h"
#include "training/run/make_model.h"
#include "training/settings/budget.h"
#include "training/settings/run_warnings.h"
#include "training/settings/schedule.h"

namespace lra::training {

// A run that was stopped after its time was over is over as well.
bool Trainer::is_over() {
  if (progress_.step == config_.train.steps) return true;
  double seconds = agreement_.seconds();
  if (const int64_t end = options_.time_ends_after; end > 0) {
    seconds = progress_.step < end ? 0 : std::numeric_limits<double>::infinity();
  }
  const std::string why = early_end(config_.train, progress_, seconds);
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
  begin();
  try {
    return train_and_test();
  } catch (const LostRank& lost) {
    // The sum that failed belongs to a step, a validation or a test that has changed nothing yet,
    // or to a change of the weights.
    const bool saves = ranks_.is_first() && progress_.step > 0 && has_last_weights_;
    if (saves) save(progress_.best_step == progress_.step);
    const Error error = lost.at_step(progress_.step, "start the processes again, each with: " +
                                                         go_on_command(folder_, options_.device));
    finish(RunStatus::kStopped, error.what());
    throw error;
  } catch (const std::exception& error) {
    const std::string failure = mixers::python_failure(error);
    if (failure.empty()) throw;
    if (ranks_.is_first() && progress_.step > 0 && has_last_weights_)
      save(progress_.best_step == progress_.step);
    finish(RunStatus::kFailed, failure);
    throw mixers::PythonError({.what = failure});
  }
}

RunRecord Trainer::train_and_test() {
  Progress bar({.description = config_.task + " " + config_.model,
                .total = std::min(config_.train.steps, options_.stop_after),
                .initial = progress_.step,
                .unit = "step",
                .quiet = options_.quiet});
  std::vector<std::string> warnings = schedule_warnings(config_.train);
  if (!takes_locks()) warnings.push_back("files were not locked (LRA_LOCKS=none)");
  for (const std::string& warning : warnings) {
    record_warning(warning);
    bar.message(warning);
  }
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
  has_last_weights_ = false;
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
  refuse_drift();
  agreement_.settle();
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
    if (over) return {.complete = !options_.stop_before_test};
    if (agreement_.stop() || progress_.step >= options_.stop_after) return {};
    if (agreement_.take_save_request() && !save(false)) return {.failure = bad_weight_failure()};
    const std::string failure = train_step(bar);
    if (!failure.empty()) return {.failure = failure};
    bar.update();
  }
}

std::string Trainer::train_step(Progress& bar) {
  if (const std::string note = profiler_.next_step(); !note.empty()) bar.message(note);
  RECORD_USER_SCOPE("training step");
  const Stopwatch watch;
  Health& health = progress_.health;
  Agreement::Numbers notices = agreement_.notices();
  const StepLoss loss = stepper_.gradients(traced("next batch", [&] { return loader_->next(); }),
                                           progress_.step, notices);
  agreement_.settle(notices);
  std::string fault = guard_.fault(loss.mean(), loss.gradient_norm, health);
  if (fault.empty()) {
    stepper_.update(progress_.step, progress_.step - health.skipped - health.undone,
                    loss.gradient_norm);
    if (!stepper_.weights_are_finite()) fault = "a weight is not finite";
  }
  if (fault.empty()) {
    guard_.passed(loss.mean(), loss.gradient_norm, health);
    progress_.mean.add(loss.loss_sum, loss.correct, loss.examples);
  } else {
    fault += " at step " + std::to_string(progress_.step + 1);
    if (!recover(fault, bar)) return fault;
  }
  ++progress_.step;
  progress_.tokens += loss.tokens;
  progress_.computed_tokens += loss.computed_tokens;
  record_.train_seconds += watch.seconds();
  if (progress_.step % config_.train.log_every == 0) log_step(bar, loss.gradient_norm);
  if (options_.histogram_every > 0 && progress_.step % options_.histogram_every == 0) {
    if (log_) log_->histograms(parameters_, progress_.step);
  }
  return "";
}

bool Trainer::recover(const std::string& fault, Progress& bar) {
  switch (guard_.remedy(progress_.health)) {
    case Remedy::kStop:
      return false;
    case Remedy::kSkip:
      stepper_.undo_step();
      if (log_) log_->bad_step(progress_.step + 1, "skip", fault);
      bar.message(fault + ": its update is skipped");
      return true;
    case Remedy::kRollBack: {
      const int64_t to = roll_back(bar);
      if (log_) log_->bad_step(progress_.step + 1, "roll_back", fault);
      bar.message(fault + ": rolled back to the weights of step " + std::to_string(to) +
                  "; continuing with the step after it");
      return true;
    }
  }
  return false;
}

int64_t Trainer::last_checkpoint_until(int64_t step) const {
  int64_t last = last_scheduled_checkpoint(config_.train, step);
  // Scheduled steps of earlier parts may have differed, so only the step that a part ended with
  // counts.
  for (const EarlierPart& part : record_.earlier_parts.value_or(std::vector<EarlierPart>{})) {
    if (part.steps <= step) last = std::max(last, part.steps);
  }
  return last;
}

int64_t Trainer::roll_back(Progress& bar) {
  std::vector<int64_t> steps;
  for (int64_t step = last_checkpoint_until(progress_.step); step > 0;
       step = last_checkpoint_until(step - 1)) {
    if (steps.empty() || checkpoints_.has(step)) steps.push_back(step);
  }
  steps.push_back(0);
  int64_t updates = 0;  // in the checkpoint restored; steps may be undone that had undone others
  const auto load = [&](int64_t step) {
    if (step > 0) {
      updates = step - checkpoints_.load(step, parameters_).health.undone;
      return;
    }
    if (checkpoints_.has(0)) {  // the trained weights that the run began with
      checkpoints_.load(0, parameters_);
      return;
    }
    const FlatParameters fresh(*make_any_model(config_, shape_), FlatUse::kInference);
    parameters_.copy_weights(fresh);
    parameters_.m.zero_();
    parameters_.v.zero_();
  };
  has_last_weights_ = false;
  const int64_t to = load_readable(steps, load, bar);
  progress_.health.undone = progress_.step + 1 - updates;
  has_last_weights_ = true;
  return to;
}

int64_t Trainer::load_best(Progress& bar) {
  std::vector<Evaluation> best_first = record_.val_curve;
  std::stable_sort(best_first.begin(), best_first.end(),
                   [](const auto& a, const auto& b) { return a.accuracy > b.accuracy; });
  std::vector<int64_t> steps = {progress_.best_step};
  for (const Evaluation& evaluation : best_first) {
    if (steps.back() == progress_.step) break;  // these weights are in memory
    const bool is_other = evaluation.step != progress_.best_step;
    if (is_other && (evaluation.step == progress_.step || checkpoints_.has(evaluation.step))) {
      steps.push_back(evaluation.step);
    }
  }
  const auto load = [&](int64_t step) {
    if (step != progress_.step) checkpoints_.load_weights_of(step, parameters_);
  };
  const int64_t found = load_readable(steps, load, bar);
  if (found != progress_.best_step) record_.checkpoint = "best readable";
  return found;
}

int64_t Trainer::load_readable(const std::vector<int64_t>& steps,
                               const std::function<void(int64_t)>& load, Progress& bar) {
  double found = 0;
  ranks_.on_first([&] {
    for (const int64_t step : steps) {
      try {
        load(step);
        found = static_cast<double>(step);
        return;
      } catch (const Error& error) {
        if (error.code() == ExitCode::kIoError || step == steps.back()) throw;
        const std::string warning =
            std::string("checkpoint skipped, using one of another step: ") + error.what();
        record_warning(warning);
        // Printed even with --quiet: something was lost.
        options_.quiet ? print_message(warning) : bar.message(warning);
      }
    }
  });
  ranks_.sum({&found, 1});
  const auto step = static_cast<int64_t>(found);
  if (!ranks_.is_first()) load(step);
  ranks_.barrier();  // the first may remove a checkpoint only when all have read it
  return step;
}

void Trainer::log_step(Progress& bar, double gradient_norm) {
  if (progress_.mean.count == 0) return;  // every step since the last line was a bad one
  const double seconds = record_.train_seconds - logged_seconds_;
  const auto per_s = [&](int64_t count) {
    return static_cast<double>(count) / std::max(seconds, 1e-9);
  };
  const Speed speed{
      .tokens_per_s = per_s(progress_.tokens - logged_tokens_),
      .examples_per_s = per_s((progress_.step - logged_step_) * config_.train.batch_size)};
  if (log_)
    log_->train(progress_.step, progress_.mean, learning_rate(config_.train, progress_.step - 1),
                speed, gradient_norm);
  // A narrow terminal shows the first of these.
  bar.set_postfix(
      "loss=" + fixed(progress_.mean.loss(), 3) + ", acc=" + fixed(progress_.mean.accuracy(), 3) +
      (record_.val_curve.empty() ? "" : ", val=" + fixed(record_.val_curve.back().accuracy, 3)) +
      ", " + thousands(static_cast<int64_t>(speed.tokens_per_s)) + " tok/s, " +
      fixed(speed.examples_per_s, speed.examples_per_s < 10 ? 1 : 0) + " ex/s, " +
      human_bytes(static_cast<uint64_t>(resident_bytes())));
  logged_seconds_ = record_.train_seconds;
  logged_tokens_ = progress_.tokens;
  logged_step_ = progress_.step;
  progress_.mean = {};
}

Trainer::Outcome Trainer::validate(Progress& bar) {
  refuse_drift();
  const Split split = config_.split_of(*task_, dataset_, "val");
  auto result =
      evaluate(*model_, split, shape_, config_.train.eval_batch_size, config_.train.eval_examples,
               {}, ranks_, config_.train.trim_padding, config_.masking());
  if (result.stopped) return Outcome::kStopped;
  if (!std::isfinite(result.summary.loss)) return Outcome::kDiverged;
  result.summary.step = progress_.step;
  record_.val_curve.push_back(result.summary);
  if (log_) log_->evaluation("val", result.summary);
  bar.message("step " + thousands(progress_.step) + ": validation accuracy " +
              (result.summary.num_positions ? "at predicted places " : "") +
              percent(result.summary.accuracy) + ", loss " + fixed(result.summary.loss, 4) +
              " on " + counted(result.summary.num_examples, "example"));
  progress_.last_eval_step = progress_.step;
  const bool is_best = result.summary.accuracy > progress_.best_accuracy;
  if (task_->validation() == "test") tested_ = result;
  if (is_best) {
    progress_.best_accuracy = result.summary.accuracy;
    progress_.best_step = progress_.step;
  }
  return save(is_best) ? Outcome::kDone : Outcome::kDiverged;
}

bool Trainer::save(bool is_best) {
  if (!stepper_.weights_are_finite()) return false;
  if (!ranks_.is_first()) return true;
  // The record is written first: it must never be behind the checkpoint.
  write_running_record();
  if (log_) log_->sync();  // a resume from this checkpoint will not log these steps again
  const bool is_first = record_.weights_hash.empty(),
             may_roll_back = config_.train.on_nonfinite == "roll_back";
  record_.weights_hash = checkpoints_.save(
      parameters_, progress_, is_best, may_roll_back ? last_checkpoint_until(progress_.step) : -1);
  if (is_first) write_running_record();  // a resume without any checkpoint has lost one from now on
  return true;
}

Trainer::Outcome Trainer::test(Progress& bar) {
  const auto& last = record_.val_curve.back();
  const bool chooses = config_.train.test_checkpoint == "best";
  if (chooses && last.num_examples < kFewestToChoose) {
    record_.checkpoint = "last";
    const std::string warning = "the last weights are tested, not those of the best validation: " +
                                counted(last.num_examples, "example") + " of val, fewer than " +
                                std::to_string(kFewestToChoose) + ", cannot choose";
    record_warning(warning);
    bar.message(warning);
  }
  const bool last_weights =
      !chooses || record_.checkpoint == "last" || progress_.best_step == progress_.step;
  const Split split = config_.split_of(*task_, dataset_, "test");
  if (task_->validation() == "test" && last_weights && last.num_examples == split.size()) {
    record_.test = last;  // the same weights on the same examples
    return Outcome::kDone;
  }
  const int64_t tested = last_weights ? progress_.step : load_best(bar);
  auto result = evaluate(
      *model_, split, shape_, config_.train.eval_batch_size, config_.train.test_examples,
      [&](int64_t count) { bar.update(count); }, ranks_, config_.train.trim_padding,
      config_.masking());
  if (result.stopped) return Outcome::kStopped;
  if (!std::isfinite(result.summary.loss)) return Outcome::kDiverged;
  result.summary.step = tested;
  record_.test = result.summary;
  tested_ = std::move(result);
  return Outcome::kDone;
}

double Trainer::seconds_so_far() const { return earlier_seconds_ + monotonic_seconds() - started_; }

// If their processors rounded differently, ranks would train different models from the same
// gradients.
void Trainer::refuse_drift() {
  if (ranks_.count() == 1 || ranks_.all_equal(weights_hash(parameters_))) return;
  throw Error(
      {.where = ranks_.name(),
       .what = "the ranks have different weights after step " + std::to_string(progress_.step),
       .expected = "the same bits",
       .advice = "use machines with the same processor, or LRA_KERNELS=ref on all"});
}

void Trainer::write_running_record() {
  if (!ranks_.is_first()) return;
  record_.steps = progress_.step;
  record_.examples = progress_.step * config_.train.batch_size;
  record_.tokens = progress_.tokens;
  record_.computed_tokens = progress_.computed_tokens;
  if (record_.train_seconds > 0) {
    record_.train_tokens_per_s = static_cast<double>(record_.tokens) / record_.train_seconds;
    record_.train_examples_per_s = static_cast<double>(record_.examples) / record_.train_seconds;
  }
  record_.total_seconds = seconds_so_far();
  const Health& health = progress_.health;
  if (health.skipped > 0) record_.skipped_steps = health.skipped;
  if (health.roll_backs > 0) {
    record_.roll_backs = health.roll_backs;
    record_.undone_steps = health.undone;
  }
  record_.peak_resident_bytes = std::max(record_.peak_resident_bytes, peak_resident_bytes());
  if (device_memory_) {
    record_.peak_device_bytes =
        std::max(record_.peak_device_bytes.value_or(0), device_memory_->peak_bytes());
  }
  if (!record_.val_curve.empty()) {
    record_.val = record_.val_curve.back();
    record_.best_val = record_.val_curve.front();
    for (const Evaluation& e : record_.val_curve) {
      if (e.accuracy > record_.best_val->accuracy) record_.best_val = e;
    }
  }
  write_record(record_, folder_.record());
}

void Trainer::write_breakdown() const {
  if (tested_.predictions.empty() || tested_.summary.step != record_.test->step) return;
  AnalysisRecord analysis;
  static_cast<RunIdentity&>(analysis) = record_;
  analysis.kind = "breakdown";
  analysis.checkpoint = tested_checkpoint(record_);
  analysis.step = record_.test->step;
  analysis.split = "test";
  analysis.num_examples = record_.test->num_examples;
  analysis.data_checks = record_.data_checks;
  add_warnings_of(record_, analysis);
  analysis.breakdown = breakdown_of(tested_, config_, *task_, dataset_, "test");
  analysis.provenance = record_.provenance;
  make_folder(folder_.analysis());
  write_analysis(analysis, folder_.analysis() + "/breakdown.json");
}

std::string Trainer::bad_weight_failure() const {
  return "a weight is not finite at step " + std::to_string(progress_.step);
}

RunRecord Trainer::finish(RunStatus status, const std::string& failure) {
  record_.status = status;
  record_.failure = failure;
  // The seconds of a shorter run say nothing anyway.
  if (options_.device.is_cpu() && ranks_.count() == 1 && others_.seconds() > 60 &&
      others_.disturb(num_threads())) {
    record_warning(
        "other programs or runs computed on the same processors: speed and times are not those of "
        "an idle machine");
  }
  if (status == RunStatus::kDone) {
    record_.weights_hash = weights_hash(parameters_);
  }
  if (status == RunStatus::kDone && ranks_.is_first()) {
    std::vector<std::string> warnings = selection_warnings(record_);
    if (!config_.train.is_masked()) {  // baselines of a task are classifiers
      for (const checks::Baseline& baseline : tasks::baselines_of(*task_, dataset_)) {
        record_.baselines[baseline.name] = baseline.accuracy;
      }
      std::ranges::move(loss_warnings(record_, shape_.num_classes), std::back_inserter(warnings));
    }
    for (const std::string& warning : warnings) record_warning(warning);
  }
  record_.provenance.finished_utc = utc_now();
  // Logged before the record is written: nothing is added to a run that is done. A run that is
  // killed in between is tested once more, and its log then begins without this line.
  if (log_ && status == RunStatus::kDone) log_->evaluation("test", *record_.test);
  if (log_) log_->sync();
  write_running_record();
  if (status == RunStatus::kDone && ranks_.is_first()) write_breakdown();
  if (log_ && status != RunStatus::kStopped) log_->ended(status == RunStatus::kDone);
  if (const std::string note = profiler_.finish(); !note.empty()) say(note);
  return record_;
}

}  // namespace lra::training
