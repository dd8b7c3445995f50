#include "training/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/clock.h"
#include "base/command_text.h"
#include "base/counted.h"
#include "base/parallel.h"
#include "base/resources.h"
#include "base/text_format.h"
#include "checks/check_table.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "mixers/python_layer.h"
#include "records/analysis_record.h"
#include "tasks/data_checks.h"
#include "tasks/data_origin.h"
#include "training/loop/breakdown.h"
#include "training/run/loaded_run.h"
#include "training/run/make_model.h"
#include "training/run/memory_estimate.h"
#include "training/settings/budget.h"
#include "training/settings/data_root.h"
#include "training/settings/new_record.h"
#include "training/settings/run_warnings.h"

namespace lra::training {

std::string go_on_command(const RunFolder& folder, at::Device device) {
  std::vector<std::string> words = {"train", "--resume", folder.path};
  if (!device.is_cpu()) words.insert(words.end(), {"--device", device.str()});
  return command_text(words);
}

Trainer::Trainer(PreparedRun run, Ranks& ranks)
    : PreparedRun(std::move(run)),
      ranks_(ranks),
      parameters_(*model),
      checkpoints_(folder.checkpoints(), config.train.keep_checkpoints, identities_of(record)),
      stepper_(*model, parameters_, config.train, config.seed, ranks, config.groups),
      guard_(config.train),
      agreement_(ranks, [this] { return seconds_so_far(); }),
      profiler_(options.profile),
      started_(monotonic_seconds()) {
  models::LossSettings loss{.label_smoothing = config.train.label_smoothing};
  if (config.train.class_weights == "balanced") {
    const Split train = config.split_of(*task, dataset, "train");
    loss.weights_C = balanced_weights(train, shape.num_classes).to(model->device());
  }
  stepper_.set_loss(std::move(loss));
}

RunRecord Trainer::run() {
  begin();
  try {
    return finish(train_and_test());
  } catch (const Diverged& diverged) {
    return finish(RunStatus::kDiverged, diverged.why);
  } catch (const LostRank& lost) {
    // The sum that failed belongs to a step, a validation or a test that has changed nothing yet,
    // or to a change of the weights.
    save_last_step();
    const Error error = lost.at_step(progress_.step, "start the processes again, each with: " +
                                                         go_on_command(folder, options.device));
    finish(RunStatus::kStopped, error.what());
    throw error;
  } catch (const std::exception& error) {
    const std::string failure = mixers::python_failure(error);
    if (failure.empty()) throw;
    save_last_step();
    finish(RunStatus::kFailed, failure);
    throw mixers::PythonError({.what = failure});
  }
}

void Trainer::begin() {
  // The check comes before anything is written: a run that is refused leaves nothing behind. The
  // estimate covers main memory, where another device does not compute.
  if (config.train.memory_check != "off" && options.device.is_cpu()) {
    ranks_.on_first([&] { check_memory(); });
  }
  // The other ranks read files that the first has prepared.
  ranks_.on_first([&] { options.resume ? resume() : start(); });
  if (options.resume && !ranks_.is_first()) resume();
  if (ranks_.is_first()) {
    log_.emplace(folder, progress_.step, options.resume);
    if (progress_.step == 0) log_->settings(record.config);
  }
  const Split train = config.split_of(*task, dataset, "train");
  const int64_t parts = config.train.accumulate;
  loader_ = std::make_unique<BatchLoader>(
      train, shape, BatchOrder(train.size(), config.train.batch_size, config.seed), progress_.step,
      LoaderSettings{
          .trim = config.train.trim_padding,
          .prefetch = config.train.prefetch,
          .threads = config.train.loader_threads,
          .parts = {.first = parts * ranks_.rank(), .count = parts, .of = parts * ranks_.count()},
          .masking = config.masking()});
}

void Trainer::say(const std::string& text) const {
  if (!options.quiet) print_message(text);
}

void Trainer::check_memory() {
  record.peak_resident_bytes = peak_resident_bytes();
  // The stepper of only this rank, whose share of a step takes as much memory as that of any other.
  TrainConfig share = config.train;
  share.accumulate *= ranks_.count();
  share.on_nonfinite = "stop";  // the copies that "skip" needs are there already
  Stepper stepper(*model, parameters_, share, config.seed);
  const MemoryEstimate estimate =
      estimate_memory(*model, stepper, config.split_of(*task, dataset, "train"), shape, share,
                      config.seed, config.masking());
  const int64_t available = memory_left(options, ranks_);
  if (config.train.memory_check == "refuse") refuse_without_memory(estimate, available);
  record.estimated_resident_bytes = estimate.peak_bytes;
  const bool fits = estimate.extra_bytes <= available;
  const std::string text =
      "memory: about " + human_bytes(static_cast<uint64_t>(estimate.peak_bytes)) +
      " for this run, " + human_bytes(static_cast<uint64_t>(estimate.extra_bytes)) +
      " more than now; " + human_bytes(static_cast<uint64_t>(available)) + " are available" +
      (fits ? "" : ", which is too little");
  say(text);
  if (!fits) add_warning(record, text);
}

void Trainer::start() {
  std::vector<std::string> warnings = record.warnings.value_or(std::vector<std::string>{});
  std::ranges::move(setting_warnings(config, *task, dataset), std::back_inserter(warnings));
  std::ranges::move(tasks::origin_warnings(config.task_spec(), *task, options.data_root, dataset),
                    std::back_inserter(warnings));
  for (const std::string& warning : warnings) {
    say(warning);
    add_warning(record, warning);
  }
  for (const CheckFinding& finding : record.data_checks.value_or(std::vector<CheckFinding>{})) {
    say(checks::text_of(finding));
  }
  make_folder(folder.checkpoints());
  refuse_without_room(folder, parameters_, config.train, progress_.step,
                      record.initial_weights.has_value());
  write_file_atomically(folder.config(), to_toml(record.config));
  write_running_record();
  remember_data_root(folder, options.data_root);
  // The run resumes from this checkpoint, rolls back to it, and is repeated from it: the file that
  // the weights came from may change.
  if (record.initial_weights) checkpoints_.save(parameters_, progress_, false);
}

// A record has the hash of weights since the first checkpoint was complete. A run that was killed
// before that starts over: nothing of it was saved.
void Trainer::refuse_lost_checkpoints(std::vector<std::string> problems) {
  if (problems.empty() && record.initial_weights) {
    problems.push_back("that of step 0, with the weights that the run begins with, is missing");
  }
  if (problems.empty() && !before->weights_hash.empty()) {
    problems.push_back("those of the " + thousands(before->steps) + " steps so far are missing");
  }
  if (problems.empty()) return say("it ended before its first checkpoint and starts over");
  throw Error({.where = folder.checkpoints(),
               .what = "no checkpoint can be read (" + problems.front() + ")",
               .expected = "the run's own",
               .advice = "restore them, or start a new run with another --out (--init-from "
                         "starts it with weights of another)"});
}

void Trainer::resume() {
  LRA_CHECK(before.has_value());
  if (!is_one_of(*before, identities_of(record))) {
    throw Error({.where = folder.path,
                 .what = before->data_hash == record.data_hash
                             ? "the task or config.toml changed since this run began"
                             : "the data changed since this run began",
                 .expected = "data " + before->data_hash + ", settings " + before->config_hash,
                 .advice = "name its data with --data, or start a new run with another --out"});
  }
  if (before->python && record.python &&
      before->python->source_sha256 != record.python->source_sha256) {
    add_warning(record, "the source of " + record.model + " changed while the run was stopped");
  }
  for (const std::string& warning : record.warnings.value_or(std::vector<std::string>{})) {
    say(warning);
  }
  std::vector<std::string> problems;
  const auto found = checkpoints_.load_latest(parameters_, &problems);
  for (const std::string& warning : before->warnings.value_or(std::vector<std::string>{})) {
    add_warning(record, warning);
  }
  for (const std::string& problem : problems) {
    const std::string text = "checkpoint skipped: " + problem;
    add_warning(record, text);
    if (ranks_.is_first()) print_message(text);  // also when quiet: something was lost
  }
  if (!found) refuse_lost_checkpoints(problems);
  if (found && found->computed_tokens < 0) {
    throw Error({.where = folder.path,
                 .what = "was started by an earlier version, whose dropout patterns differ",
                 .expected = "a run of this version: no seed reproduces a mixture of two",
                 .advice = "finish it with the version that started it, or start a new run with "
                           "another --out; 'lra eval' accepts its weights"});
  }
  if (ranks_.is_first()) {
    remove_temporaries(folder.path);
    remember_data_root(folder, options.data_root);
  }
  if (found) {
    progress_ = *found;
    record.weights_hash = weights_hash(parameters_);
    const std::string file =
        checkpoints_.folder_of("step_" + std::to_string(found->step)) + "/model.safetensors";
    refuse_other_weights(file, {.progress = *found, .hash = record.weights_hash}, *before);
    if (ranks_.is_first()) {
      checkpoints_.repair_links(progress_);
      refuse_without_room(folder, parameters_, config.train, progress_.step,
                          record.initial_weights.has_value());
    }
    for (const Evaluation& evaluation : before->val_curve) {
      if (evaluation.step <= progress_.last_eval_step) record.val_curve.push_back(evaluation);
    }
    record.train_seconds = before->train_seconds;
    earlier_seconds_ = before->total_seconds;
    record.peak_resident_bytes = std::max(record.peak_resident_bytes, before->peak_resident_bytes);
    if (device_memory) record.peak_device_bytes = before->peak_device_bytes;
  }
  logged_seconds_ = record.train_seconds;
  logged_tokens_ = progress_.tokens;
  logged_step_ = progress_.step;
  if (!record.earlier_parts || !ranks_.is_first()) return;
  for (EarlierPart& part : *record.earlier_parts) part.steps = std::min(part.steps, progress_.step);
  write_running_record();  // before the settings: see read_run
  write_file_atomically(folder.config(), to_toml(record.config));
}

RunStatus Trainer::train_and_test() {
  Progress bar({.description = config.task + " " + config.model,
                .total = std::min(config.train.steps, options.stop_after),
                .initial = progress_.step,
                .unit = "step",
                .quiet = options.quiet});
  std::vector<std::string> warnings = schedule_warnings(config.train);
  if (!takes_locks()) warnings.push_back("files were not locked (LRA_LOCKS=none)");
  for (const std::string& warning : warnings) {
    add_warning(record, warning);
    bar.message(warning);
  }
  if (!train(bar)) {
    save(false);
    return RunStatus::kStopped;
  }
  bar.finish();
  has_last_weights_ = false;
  return test() ? RunStatus::kDone : RunStatus::kStopped;
}

bool Trainer::train(Progress& bar) {
  refuse_drift();
  agreement_.settle();
  for (;;) {
    bool over = is_over();
    const int64_t step = progress_.step;
    const auto is_due = [&](int64_t every) { return every > 0 && step > 0 && step % every == 0; };
    if (step > progress_.last_eval_step && (over || is_due(config.train.eval_every))) {
      if (!validate(bar)) return false;
      over = over || is_over();  // this validation may have been the last one to wait for
    } else if (is_due(config.train.checkpoint_every)) {
      save(false);
    }
    if (over) return !options.stop_before_test;
    if (agreement_.stop() || progress_.step >= options.stop_after) return false;
    if (agreement_.take_save_request()) save(false);
    train_step(bar);
    bar.update();
  }
}

// A run that was stopped after its time was over is over as well.
bool Trainer::is_over() {
  if (progress_.step == config.train.steps) return true;
  double seconds = agreement_.seconds();
  if (const int64_t end = options.time_ends_after; end > 0) {
    seconds = progress_.step < end ? 0 : std::numeric_limits<double>::infinity();
  }
  const std::string why = early_end(config.train, progress_, seconds);
  if (why.empty()) return false;
  record.ended_by = why;
  return true;
}

void Trainer::train_step(Progress& bar) {
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
    recover(fault, bar);
  }
  ++progress_.step;
  progress_.tokens += loss.tokens;
  progress_.computed_tokens += loss.computed_tokens;
  record.train_seconds += watch.seconds();
  if (progress_.step % config.train.log_every == 0) log_step(bar, loss.gradient_norm);
  if (options.histogram_every > 0 && progress_.step % options.histogram_every == 0) {
    if (log_) log_->histograms(parameters_, progress_.step);
  }
}

void Trainer::recover(const std::string& fault, Progress& bar) {
  switch (guard_.remedy(progress_.health)) {
    case Remedy::kStop:
      throw Diverged{fault};
    case Remedy::kSkip:
      stepper_.undo_step();
      if (log_) log_->bad_step(progress_.step + 1, "skip", fault);
      return bar.message(fault + ": its update is skipped");
    case Remedy::kRollBack:
      const int64_t to = roll_back(bar);
      if (log_) log_->bad_step(progress_.step + 1, "roll_back", fault);
      return bar.message(fault + ": rolled back to the weights of step " + std::to_string(to) +
                         "; continuing with the step after it");
  }
}

int64_t Trainer::last_checkpoint_until(int64_t step) const {
  int64_t last = last_scheduled_checkpoint(config.train, step);
  // Scheduled steps of earlier parts may have differed, so only the step that a part ended with
  // counts.
  for (const EarlierPart& part : record.earlier_parts.value_or(std::vector<EarlierPart>{})) {
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
    const FlatParameters fresh(*make_any_model(config, shape), FlatUse::kInference);
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
  std::vector<Evaluation> best_first = record.val_curve;
  std::ranges::stable_sort(best_first, std::ranges::greater(), &Evaluation::accuracy);
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
  if (found != progress_.best_step) record.checkpoint = "best readable";
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
        add_warning(record, warning);
        // Printed even with --quiet: something was lost.
        options.quiet ? print_message(warning) : bar.message(warning);
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
  const double seconds = record.train_seconds - logged_seconds_;
  const auto per_s = [&](int64_t count) {
    return static_cast<double>(count) / std::max(seconds, 1e-9);
  };
  const Speed speed{
      .tokens_per_s = per_s(progress_.tokens - logged_tokens_),
      .examples_per_s = per_s((progress_.step - logged_step_) * config.train.batch_size)};
  if (log_)
    log_->train(progress_.step, progress_.mean, learning_rate(config.train, progress_.step - 1),
                speed, gradient_norm);
  // A narrow terminal shows the first of these.
  bar.set_postfix(
      "loss=" + fixed(progress_.mean.loss(), 3) + ", acc=" + fixed(progress_.mean.accuracy(), 3) +
      (record.val_curve.empty() ? "" : ", val=" + fixed(record.val_curve.back().accuracy, 3)) +
      ", " + thousands(static_cast<int64_t>(speed.tokens_per_s)) + " tok/s, " +
      fixed(speed.examples_per_s, speed.examples_per_s < 10 ? 1 : 0) + " ex/s, " +
      human_bytes(static_cast<uint64_t>(resident_bytes())));
  logged_seconds_ = record.train_seconds;
  logged_tokens_ = progress_.tokens;
  logged_step_ = progress_.step;
  progress_.mean = {};
}

bool Trainer::validate(Progress& bar) {
  refuse_drift();
  const Split split = config.split_of(*task, dataset, "val");
  auto result =
      evaluate(*model, split, shape, config.train.eval_batch_size, config.train.eval_examples, {},
               ranks_, config.train.trim_padding, config.masking());
  if (result.stopped) return false;
  if (!std::isfinite(result.summary.loss)) {
    throw Diverged{"the validation loss is not finite at step " + std::to_string(progress_.step)};
  }
  result.summary.step = progress_.step;
  record.val_curve.push_back(result.summary);
  if (log_) log_->evaluation("val", result.summary);
  bar.message("step " + thousands(progress_.step) + ": validation accuracy " +
              (result.summary.num_positions ? "at predicted places " : "") +
              percent(result.summary.accuracy) + ", loss " + fixed(result.summary.loss, 4) +
              " on " + counted(result.summary.num_examples, "example"));
  progress_.last_eval_step = progress_.step;
  const bool is_best = result.summary.accuracy > progress_.best_accuracy;
  if (task->validation() == "test") tested_ = result;
  if (is_best) {
    progress_.best_accuracy = result.summary.accuracy;
    progress_.best_step = progress_.step;
  }
  save(is_best);
  return true;
}

void Trainer::save(bool is_best) {
  if (!stepper_.weights_are_finite()) {
    throw Diverged{"a weight is not finite at step " + std::to_string(progress_.step)};
  }
  if (!ranks_.is_first()) return;
  // The record is written first: it must never be behind the checkpoint.
  write_running_record();
  if (log_) log_->sync();  // a resume from this checkpoint will not log these steps again
  const bool is_first = record.weights_hash.empty(),
             may_roll_back = config.train.on_nonfinite == "roll_back";
  record.weights_hash = checkpoints_.save(
      parameters_, progress_, is_best, may_roll_back ? last_checkpoint_until(progress_.step) : -1);
  if (is_first) write_running_record();  // a resume without any checkpoint has lost one from now on
}

void Trainer::save_last_step() {
  if (!ranks_.is_first() || progress_.step == 0 || !has_last_weights_) return;
  if (stepper_.weights_are_finite()) save(progress_.best_step == progress_.step);
}

bool Trainer::test() {
  const Split split = config.split_of(*task, dataset, "test");
  const int64_t limit = config.train.test_examples;
  Progress bar({.description = "test",
                .total = limit > 0 ? std::min(limit, split.size()) : split.size(),
                .unit = "ex",
                .quiet = options.quiet});
  const auto& last = record.val_curve.back();
  const bool chooses = config.train.test_checkpoint == "best";
  if (chooses && last.num_examples < kFewestToChoose) {
    record.checkpoint = "last";
    const std::string warning = "the last weights are tested, not those of the best validation: " +
                                counted(last.num_examples, "example") + " of val, fewer than " +
                                std::to_string(kFewestToChoose) + ", cannot choose";
    add_warning(record, warning);
    bar.message(warning);
  }
  const bool last_weights =
      !chooses || record.checkpoint == "last" || progress_.best_step == progress_.step;
  if (task->validation() == "test" && last_weights && last.num_examples == split.size()) {
    record.test = last;  // the same weights on the same examples
    bar.finish();
    return true;
  }
  const int64_t tested = last_weights ? progress_.step : load_best(bar);
  auto result = evaluate(
      *model, split, shape, config.train.eval_batch_size, limit,
      [&](int64_t count) { bar.update(count); }, ranks_, config.train.trim_padding,
      config.masking());
  if (result.stopped) return false;
  if (!std::isfinite(result.summary.loss)) throw Diverged{"the test loss is not finite"};
  bar.finish();
  result.summary.step = tested;
  record.test = result.summary;
  tested_ = std::move(result);
  return true;
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
  record.steps = progress_.step;
  record.examples = progress_.step * config.train.batch_size;
  record.tokens = progress_.tokens;
  record.computed_tokens = progress_.computed_tokens;
  if (record.train_seconds > 0) {
    record.train_tokens_per_s = static_cast<double>(record.tokens) / record.train_seconds;
    record.train_examples_per_s = static_cast<double>(record.examples) / record.train_seconds;
  }
  record.total_seconds = seconds_so_far();
  const Health& health = progress_.health;
  if (health.skipped > 0) record.skipped_steps = health.skipped;
  if (health.roll_backs > 0) {
    record.roll_backs = health.roll_backs;
    record.undone_steps = health.undone;
  }
  record.peak_resident_bytes = std::max(record.peak_resident_bytes, peak_resident_bytes());
  if (device_memory) {
    record.peak_device_bytes =
        std::max(record.peak_device_bytes.value_or(0), device_memory->peak_bytes());
  }
  if (!record.val_curve.empty()) {
    record.val = record.val_curve.back();
    record.best_val = *std::ranges::max_element(record.val_curve, {}, &Evaluation::accuracy);
  }
  write_record(record, folder.record());
}

void Trainer::write_breakdown() const {
  if (tested_.predictions.empty() || tested_.summary.step != record.test->step) return;
  AnalysisRecord analysis;
  static_cast<RunIdentity&>(analysis) = record;
  analysis.kind = "breakdown";
  analysis.checkpoint = tested_checkpoint(record);
  analysis.step = record.test->step;
  analysis.split = "test";
  analysis.num_examples = record.test->num_examples;
  analysis.data_checks = record.data_checks;
  add_warnings_of(record, analysis);
  analysis.breakdown = breakdown_of(tested_, config, *task, dataset, "test");
  analysis.provenance = record.provenance;
  make_folder(folder.analysis());
  write_analysis(analysis, folder.analysis() + "/breakdown.json");
}

RunRecord Trainer::finish(RunStatus status, const std::string& failure) {
  record.status = status;
  record.failure = failure;
  // The seconds of a shorter run say nothing anyway.
  if (options.device.is_cpu() && ranks_.count() == 1 && others_.seconds() > 60 &&
      others_.disturb(num_threads())) {
    add_warning(record,
                "other programs or runs computed on the same processors: speed and times are not "
                "those of an idle machine");
  }
  if (status == RunStatus::kDone) record.weights_hash = weights_hash(parameters_);
  if (status == RunStatus::kDone && ranks_.is_first()) {
    if (!config.train.is_masked()) {  // baselines of a task are classifiers
      for (const checks::Baseline& baseline : tasks::baselines_of(*task, dataset)) {
        record.baselines[baseline.name] = baseline.accuracy;
      }
    }
    for (const std::string& warning : selection_warnings(record)) add_warning(record, warning);
  }
  record.provenance.finished_utc = utc_now();
  // Logged before the record is written: nothing is added to a run that is done. A run that is
  // killed in between is tested once more, and its log then begins without this line.
  if (log_ && status == RunStatus::kDone) log_->evaluation("test", *record.test);
  if (log_) log_->sync();
  write_running_record();
  if (status == RunStatus::kDone && ranks_.is_first()) write_breakdown();
  if (log_ && status != RunStatus::kStopped) log_->ended(status == RunStatus::kDone);
  if (const std::string note = profiler_.finish(); !note.empty()) say(note);
  return record;
}

}  // namespace lra::training
