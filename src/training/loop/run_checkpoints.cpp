#include "training/loop/run_checkpoints.h"

#include <algorithm>

#include "base/text_format.h"
#include "io/atomic_file.h"
#include "training/run/make_model.h"
#include "training/settings/budget.h"
#include "training/settings/data_root.h"
#include "training/settings/new_record.h"

namespace lra::training {

RunCheckpoints::RunCheckpoints(RunState& run, RunOutput& output)
    : run_(run),
      output_(output),
      store_(run.folder.checkpoints(), run.config.train.keep_checkpoints,
             identities_of(run.record)) {}

// The run resumes from this checkpoint, rolls back to it, and is repeated from it: the file that
// the weights came from may change.
void RunCheckpoints::save_first() {
  if (run_.record.initial_weights) store_.save(run_.parameters, run_.progress, false);
}

// A record has the hash of weights since the first checkpoint was complete. A run that was killed
// before that starts over: nothing of it was saved.
void RunCheckpoints::refuse_lost(std::vector<std::string> problems) const {
  if (problems.empty() && run_.record.initial_weights) {
    problems.push_back("that of step 0, with the weights that the run begins with, is missing");
  }
  if (problems.empty() && !run_.before->weights_hash.empty()) {
    problems.push_back("those of the " + thousands(run_.before->steps) +
                       " steps so far are missing");
  }
  if (problems.empty()) return output_.say("it ended before its first checkpoint and starts over");
  throw Error({.where = run_.folder.checkpoints(),
               .what = "no checkpoint can be read (" + problems.front() + ")",
               .expected = "the run's own",
               .advice = "restore them, or start a new run with another --out (--init-from "
                         "starts it with weights of another)"});
}

bool RunCheckpoints::resume() {
  RunRecord& record = run_.record;
  std::vector<std::string> problems;
  const auto found = store_.load_latest(run_.parameters, &problems);
  for (const std::string& warning : items_of(run_.before->warnings)) {
    add_warning(record, warning);
  }
  for (const std::string& problem : problems) {
    const std::string text = "checkpoint skipped: " + problem;
    add_warning(record, text);
    if (run_.ranks.is_first()) print_message(text);  // also when quiet: something was lost
  }
  if (!found) refuse_lost(problems);
  if (found && found->computed_tokens < 0) {
    throw Error({.where = run_.folder.path,
                 .what = "was started by an earlier version, whose dropout patterns differ",
                 .expected = "a run of this version: no seed reproduces a mixture of two",
                 .advice = "finish it with the version that started it, or start a new run with "
                           "another --out; 'lra eval' accepts its weights"});
  }
  if (run_.ranks.is_first()) {
    remove_temporaries(run_.folder.path);
    remember_data_root(run_.folder, run_.options.data_root);
  }
  if (!found) return false;
  run_.progress = *found;
  record.weights_hash = weights_hash(run_.parameters);
  refuse_other_weights(store_.weights_of(found->step),
                       {.progress = *found, .hash = record.weights_hash}, *run_.before);
  if (run_.ranks.is_first()) {
    store_.repair_links(*found);
    refuse_without_room(run_.folder, run_.parameters, run_.config.train, found->step,
                        record.initial_weights.has_value());
  }
  return true;
}

void RunCheckpoints::save(bool is_best) {
  const int64_t step = run_.progress.step;
  if (!run_.parameters.weights_are_finite()) {
    throw Diverged{"a weight is not finite at step " + std::to_string(step)};
  }
  if (!run_.ranks.is_first()) return;
  // The record is written first: it must never be behind the checkpoint.
  output_.write_record();
  // A resume from this checkpoint will not log these steps again.
  if (MetricsLog* log = output_.log()) log->sync();
  const bool is_first = run_.record.weights_hash.empty(),
             may_roll_back = run_.config.train.on_nonfinite == "roll_back";
  run_.record.weights_hash =
      store_.save(run_.parameters, run_.progress, is_best, may_roll_back ? last_until(step) : -1);
  if (is_first) output_.write_record();  // a resume without any checkpoint has lost one from now on
}

void RunCheckpoints::save_last_step() {
  const TrainProgress& progress = run_.progress;
  if (!run_.ranks.is_first() || progress.step == 0 || !run_.has_last_weights) return;
  if (run_.parameters.weights_are_finite()) save(progress.best_step == progress.step);
}

int64_t RunCheckpoints::last_until(int64_t step) const {
  int64_t last = last_scheduled_checkpoint(run_.config.train, step);
  // Scheduled steps of earlier parts may have differed, so only the step that a part ended with
  // counts.
  for (const EarlierPart& part : items_of(run_.record.earlier_parts)) {
    if (part.steps <= step) last = std::max(last, part.steps);
  }
  return last;
}

int64_t RunCheckpoints::roll_back(Progress& bar) {
  FlatParameters& parameters = run_.parameters;
  TrainProgress& progress = run_.progress;
  std::vector<int64_t> steps;
  for (int64_t step = last_until(progress.step); step > 0; step = last_until(step - 1)) {
    if (steps.empty() || store_.has(step)) steps.push_back(step);
  }
  steps.push_back(0);
  int64_t updates = 0;  // in the checkpoint restored; steps may be undone that had undone others
  const auto load = [&](int64_t step) {
    if (step > 0) {
      updates = step - store_.load(step, parameters).health.undone;
      return;
    }
    if (store_.has(0)) {  // the trained weights that the run began with
      store_.load(0, parameters);
      return;
    }
    const FlatParameters fresh(*make_any_model(run_.config, run_.shape), FlatUse::kInference);
    parameters.copy_weights(fresh);
    parameters.m.zero_();
    parameters.v.zero_();
  };
  run_.has_last_weights = false;
  const int64_t to = load_readable(steps, load, bar);
  progress.health.undone = progress.step + 1 - updates;
  run_.has_last_weights = true;
  return to;
}

int64_t RunCheckpoints::load_best(Progress& bar) {
  const TrainProgress& progress = run_.progress;
  std::vector<Evaluation> best_first = run_.record.val_curve;
  std::ranges::stable_sort(best_first, std::ranges::greater(), &Evaluation::accuracy);
  std::vector<int64_t> steps = {progress.best_step};
  for (const Evaluation& evaluation : best_first) {
    if (steps.back() == progress.step) break;  // these weights are in memory
    const bool is_other = evaluation.step != progress.best_step;
    if (is_other && (evaluation.step == progress.step || store_.has(evaluation.step))) {
      steps.push_back(evaluation.step);
    }
  }
  const auto load = [&](int64_t step) {
    if (step != progress.step) store_.load_weights_of(step, run_.parameters);
  };
  const int64_t found = load_readable(steps, load, bar);
  if (found != progress.best_step) run_.record.checkpoint = "best readable";
  return found;
}

int64_t RunCheckpoints::load_readable(const std::vector<int64_t>& steps,
                                      const std::function<void(int64_t)>& load, Progress& bar) {
  double found = 0;
  run_.ranks.on_first([&] {
    for (const int64_t step : steps) {
      try {
        load(step);
        found = static_cast<double>(step);
        return;
      } catch (const Error& error) {
        if (error.code() == ExitCode::kIoError || step == steps.back()) throw;
        const std::string warning =
            std::string("checkpoint skipped, using one of another step: ") + error.what();
        add_warning(run_.record, warning);
        // Printed even with --quiet: something was lost.
        run_.options.quiet ? print_message(warning) : bar.message(warning);
      }
    }
  });
  run_.ranks.sum({&found, 1});
  const auto step = static_cast<int64_t>(found);
  if (!run_.ranks.is_first()) load(step);
  run_.ranks.barrier();  // the first may remove a checkpoint only when all have read it
  return step;
}

}  // namespace lra::training
