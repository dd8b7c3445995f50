#include "training/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/command_text.h"
#include "base/counted.h"
#include "base/text_format.h"
#include "checks/check_table.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "mixers/python_layer.h"
#include "tasks/data_origin.h"
#include "training/loop/breakdown.h"
#include "training/run/memory_estimate.h"
#include "training/settings/budget.h"
#include "training/settings/data_root.h"
#include "training/settings/new_record.h"
#include "training/settings/run_warnings.h"

namespace lra::training {

std::string go_on_command(const RunFolder& folder, at::Device device, int64_t num_ranks) {
  std::vector<std::string> words = {"train", "--resume", folder.path};
  if (num_ranks > 1) device.set_index(-1);  // each takes the one of its own number
  if (!device.is_cpu()) words.insert(words.end(), {"--device", device.str()});
  return command_text(words);
}

Trainer::Trainer(PreparedRun run, Ranks& ranks)
    : RunState(std::move(run), ranks),
      output_(*this),
      checkpoints_(*this, output_),
      stepper_(*model, parameters, config.train, config.seed, ranks, config.groups),
      agreement_(ranks, [this] { return output_.seconds(); }),
      profiler_(options.profile) {
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
    checkpoints_.save_last_step();
    const Error error =
        lost.at_step(progress.step, "start the processes again, each with: " +
                                        go_on_command(folder, options.device, ranks.count()));
    finish(RunStatus::kStopped, error.what());
    throw error;
  } catch (const std::exception& error) {
    const std::string failure = mixers::python_failure(error);
    if (failure.empty()) throw;
    checkpoints_.save_last_step();
    finish(RunStatus::kFailed, failure);
    throw mixers::PythonError({.what = failure});
  }
}

void Trainer::begin() {
  // The check comes before anything is written: a run that is refused leaves nothing behind. The
  // estimate covers main memory, where another device does not compute.
  if (config.train.memory_check != "off" && options.device.is_cpu()) {
    ranks.on_first([&] { check_memory(); });
  }
  // The other ranks read files that the first has prepared.
  ranks.on_first([&] { options.resume ? resume() : start(); });
  if (options.resume && !ranks.is_first()) resume();
  output_.open_log();
  const Split train = config.split_of(*task, dataset, "train");
  const int64_t parts = config.train.accumulate;
  loader_ = std::make_unique<BatchLoader>(
      train, shape, BatchOrder(train.size(), config.train.batch_size, config.seed), progress.step,
      LoaderSettings{
          .trim = config.train.trim_padding,
          .prefetch = config.train.prefetch,
          .threads = config.train.loader_threads,
          .parts = {.first = parts * ranks.rank(), .count = parts, .of = parts * ranks.count()},
          .masking = config.masking()});
}

void Trainer::check_memory() {
  record.peak_resident_bytes = peak_resident_bytes();
  // The stepper of only this rank, whose share of a step takes as much memory as that of any other.
  TrainConfig share = config.train;
  share.accumulate *= ranks.count();
  share.on_nonfinite = "stop";  // the copies that "skip" needs are there already
  Stepper stepper(*model, parameters, share, config.seed);
  const MemoryEstimate estimate =
      estimate_memory(*model, stepper, config.split_of(*task, dataset, "train"), shape, share,
                      config.seed, config.masking());
  const int64_t available = memory_left(options, ranks);
  if (config.train.memory_check == "refuse") refuse_without_memory(estimate, available);
  record.estimated_resident_bytes = estimate.peak_bytes;
  const bool fits = estimate.extra_bytes <= available;
  const std::string text =
      "memory: about " + human_bytes(static_cast<uint64_t>(estimate.peak_bytes)) +
      " for this run, " + human_bytes(static_cast<uint64_t>(estimate.extra_bytes)) +
      " more than now; " + human_bytes(static_cast<uint64_t>(available)) + " are available" +
      (fits ? "" : ", which is too little");
  output_.say(text);
  if (!fits) add_warning(record, text);
}

void Trainer::start() {
  std::vector<std::string> warnings = record.warnings.value_or(std::vector<std::string>{});
  std::ranges::move(setting_warnings(config, *task, dataset), std::back_inserter(warnings));
  std::ranges::move(tasks::origin_warnings(config.task_spec(), *task, options.data_root, dataset),
                    std::back_inserter(warnings));
  for (const std::string& warning : warnings) {
    output_.say(warning);
    add_warning(record, warning);
  }
  for (const CheckFinding& finding : items_of(record.data_checks)) {
    output_.say(checks::text_of(finding));
  }
  make_folder(folder.checkpoints());
  refuse_without_room(folder, parameters, config.train, progress.step,
                      record.initial_weights.has_value());
  write_file_atomically(folder.config(), to_toml(record.config));
  output_.write_record();
  remember_data_root(folder, options.data_root);
  checkpoints_.save_first();
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
  for (const std::string& warning : items_of(record.warnings)) {
    output_.say(warning);
  }
  if (checkpoints_.resume()) output_.resume();
  if (!record.earlier_parts || !ranks.is_first()) return;
  for (EarlierPart& part : *record.earlier_parts) part.steps = std::min(part.steps, progress.step);
  output_.write_record();  // before the settings: see read_run
  write_file_atomically(folder.config(), to_toml(record.config));
}

RunStatus Trainer::train_and_test() {
  Progress bar({.description = config.task + " " + config.model,
                .total = std::min(config.train.steps, options.stop_after),
                .initial = progress.step,
                .unit = "step",
                .quiet = options.quiet});
  std::vector<std::string> warnings = schedule_warnings(config.train);
  if (!takes_locks()) warnings.push_back("files were not locked (LRA_LOCKS=none)");
  for (const std::string& warning : warnings) {
    add_warning(record, warning);
    bar.message(warning);
  }
  if (!train(bar)) {
    checkpoints_.save(false);
    return RunStatus::kStopped;
  }
  bar.finish();
  has_last_weights = false;
  return test() ? RunStatus::kDone : RunStatus::kStopped;
}

bool Trainer::train(Progress& bar) {
  refuse_drift();
  agreement_.settle();
  for (;;) {
    bool over = is_over();
    const int64_t step = progress.step;
    const auto is_due = [&](int64_t every) { return every > 0 && step > 0 && step % every == 0; };
    if (step > progress.last_eval_step && (over || is_due(config.train.eval_every))) {
      if (!validate(bar)) return false;
      over = over || is_over();  // this validation may have been the last one to wait for
    } else if (is_due(config.train.checkpoint_every)) {
      checkpoints_.save(false);
    }
    if (over) return !options.stop_before_test;
    if (agreement_.stop() || progress.step >= options.stop_after) return false;
    if (agreement_.take_save_request()) checkpoints_.save(false);
    train_step(bar);
    bar.update();
  }
}

// A run that was stopped after its time was over is over as well.
bool Trainer::is_over() {
  if (progress.step == config.train.steps) return true;
  double seconds = agreement_.seconds();
  if (const int64_t end = options.time_ends_after; end > 0) {
    seconds = progress.step < end ? 0 : std::numeric_limits<double>::infinity();
  }
  const std::string why = early_end(config.train, progress, seconds);
  if (why.empty()) return false;
  record.ended_by = why;
  return true;
}

void Trainer::train_step(Progress& bar) {
  if (const std::string note = profiler_.next_step(); !note.empty()) bar.message(note);
  RECORD_USER_SCOPE("training step");
  const Stopwatch watch;
  Health& health = progress.health;
  Agreement::Numbers notices = agreement_.notices();
  // A fault is noticed after the update: skip and roll_back undo it, stop saves nothing.
  const StepLoss loss =
      stepper_.step(traced("next batch", [&] { return loader_->next(); }), progress.step,
                    progress.step - health.skipped - health.undone, notices);
  agreement_.settle(notices);
  std::string fault = fault_of(config.train, loss.mean(), loss.gradient_norm, health);
  if (fault.empty() && !loss.weights_are_finite) fault = "a weight is not finite";
  if (fault.empty()) {
    count_good_step(config.train, loss.mean(), loss.gradient_norm, health);
    progress.mean.add(loss.loss_sum, loss.correct, loss.examples);
  } else {
    fault += " at step " + std::to_string(progress.step + 1);
    recover(fault, bar);
  }
  ++progress.step;
  progress.tokens += loss.tokens;
  progress.computed_tokens += loss.computed_tokens;
  record.train_seconds += watch.seconds();
  if (progress.step % config.train.log_every == 0) output_.log_step(bar, loss.gradient_norm);
  if (options.histogram_every > 0 && progress.step % options.histogram_every == 0) {
    if (MetricsLog* log = output_.log()) log->histograms(parameters, progress.step);
  }
}

void Trainer::recover(const std::string& fault, Progress& bar) {
  switch (remedy_for(config.train, progress.health)) {
    case Remedy::kStop:
      throw Diverged{fault};
    case Remedy::kSkip:
      stepper_.undo_step();
      if (MetricsLog* log = output_.log()) log->bad_step(progress.step + 1, "skip", fault);
      return bar.message(fault + ": its update is skipped");
    case Remedy::kRollBack:
      const int64_t to = checkpoints_.roll_back(bar);
      if (MetricsLog* log = output_.log()) log->bad_step(progress.step + 1, "roll_back", fault);
      return bar.message(fault + ": rolled back to the weights of step " + std::to_string(to) +
                         "; continuing with the step after it");
  }
}

bool Trainer::validate(Progress& bar) {
  refuse_drift();
  const Split split = config.split_of(*task, dataset, "val");
  auto result =
      evaluate(*model, split, shape, config.train.eval_batch_size, config.train.eval_examples, {},
               ranks, config.train.trim_padding, config.masking());
  if (result.stopped) return false;
  if (!std::isfinite(result.summary.loss)) {
    throw Diverged{"the validation loss is not finite at step " + std::to_string(progress.step)};
  }
  result.summary.step = progress.step;
  record.val_curve.push_back(result.summary);
  if (MetricsLog* log = output_.log()) log->evaluation("val", result.summary);
  bar.message("step " + thousands(progress.step) + ": validation accuracy " +
              (result.summary.num_positions ? "at predicted places " : "") +
              percent(result.summary.accuracy) + ", loss " + fixed(result.summary.loss, 4) +
              " on " + counted(result.summary.num_examples, "example"));
  progress.last_eval_step = progress.step;
  const bool is_best = result.summary.accuracy > progress.best_accuracy;
  if (task->validation() == "test") tested_ = result;
  if (is_best) {
    progress.best_accuracy = result.summary.accuracy;
    progress.best_step = progress.step;
  }
  checkpoints_.save(is_best);
  return true;
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
      !chooses || record.checkpoint == "last" || progress.best_step == progress.step;
  if (task->validation() == "test" && last_weights && last.num_examples == split.size()) {
    record.test = last;  // the same weights on the same examples
    bar.finish();
    return true;
  }
  const int64_t tested = last_weights ? progress.step : checkpoints_.load_best(bar);
  auto result = evaluate(
      *model, split, shape, config.train.eval_batch_size, limit,
      [&](int64_t count) { bar.update(count); }, ranks, config.train.trim_padding,
      config.masking());
  if (result.stopped) return false;
  if (!std::isfinite(result.summary.loss)) throw Diverged{"the test loss is not finite"};
  bar.finish();
  result.summary.step = tested;
  record.test = result.summary;
  tested_ = std::move(result);
  return true;
}

// If their processors rounded differently, ranks would train different models from the same
// gradients.
void Trainer::refuse_drift() {
  if (ranks.count() == 1 || ranks.all_equal(weights_hash(parameters))) return;
  throw Error(
      {.where = ranks.name(),
       .what = "the ranks have different weights after step " + std::to_string(progress.step),
       .expected = "the same bits",
       .advice = "use machines with the same processor, or LRA_KERNELS=ref on all"});
}

RunRecord Trainer::finish(RunStatus status, const std::string& failure) {
  output_.finish(status, failure, tested_);
  if (const std::string note = profiler_.finish(); !note.empty()) output_.say(note);
  return record;
}

}  // namespace lra::training
