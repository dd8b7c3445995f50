#include "training/loop/run_output.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/text_format.h"
#include "io/atomic_file.h"
#include "records/analysis_record.h"
#include "tasks/data_checks.h"
#include "training/loop/breakdown.h"
#include "training/run/checkpoint.h"
#include "training/settings/budget.h"
#include "training/settings/new_record.h"
#include "training/settings/run_warnings.h"

namespace lra::training {

void RunOutput::say(const std::string& text) const {
  if (!run_.options.quiet) print_message(text);
}

void RunOutput::resume() {
  RunRecord& record = run_.record;
  const RunRecord& before = *run_.before;
  for (const Evaluation& evaluation : before.val_curve) {
    if (evaluation.step <= run_.progress.last_eval_step) record.val_curve.push_back(evaluation);
  }
  record.train_seconds = before.train_seconds;
  earlier_seconds_ = before.total_seconds;
  record.peak_resident_bytes = std::max(record.peak_resident_bytes, before.peak_resident_bytes);
  if (run_.device_memory) record.peak_device_bytes = before.peak_device_bytes;
}

void RunOutput::open_log() {
  const TrainProgress& progress = run_.progress;
  logged_ = {run_.record.train_seconds, progress.tokens, progress.step};
  if (!run_.ranks.is_first()) return;
  log_.emplace(run_.folder, progress.step, run_.options.resume);
  if (progress.step == 0) log_->settings(run_.record.config);
}

void RunOutput::log_step(Progress& bar, double gradient_norm) {
  TrainProgress& progress = run_.progress;
  const RunRecord& record = run_.record;
  const TrainConfig& train = run_.config.train;
  if (progress.mean.count == 0) return;  // every step since the last line was a bad one
  const double seconds = record.train_seconds - logged_.seconds;
  const auto per_s = [&](int64_t count) {
    return static_cast<double>(count) / std::max(seconds, 1e-9);
  };
  const Speed speed{.tokens_per_s = per_s(progress.tokens - logged_.tokens),
                    .examples_per_s = per_s((progress.step - logged_.step) * train.batch_size)};
  if (log_) {
    log_->train(progress.step, progress.mean, learning_rate(train, progress.step - 1), speed,
                gradient_norm);
  }
  // A narrow terminal shows the first of these.
  bar.set_postfix(
      "loss=" + fixed(progress.mean.loss(), 3) + ", acc=" + fixed(progress.mean.accuracy(), 3) +
      (record.val_curve.empty() ? "" : ", val=" + fixed(record.val_curve.back().accuracy, 3)) +
      ", " + thousands(static_cast<int64_t>(speed.tokens_per_s)) + " tok/s, " +
      fixed(speed.examples_per_s, speed.examples_per_s < 10 ? 1 : 0) + " ex/s, " +
      human_bytes(static_cast<uint64_t>(resident_bytes())));
  logged_ = {record.train_seconds, progress.tokens, progress.step};
  progress.mean = {};
}

void RunOutput::write_record() {
  if (!run_.ranks.is_first()) return;
  RunRecord& record = run_.record;
  const TrainProgress& progress = run_.progress;
  record.steps = progress.step;
  record.examples = progress.step * run_.config.train.batch_size;
  record.tokens = progress.tokens;
  record.computed_tokens = progress.computed_tokens;
  if (record.train_seconds > 0) {
    record.train_tokens_per_s = static_cast<double>(record.tokens) / record.train_seconds;
    record.train_examples_per_s = static_cast<double>(record.examples) / record.train_seconds;
  }
  record.total_seconds = seconds();
  const Health& health = progress.health;
  if (health.skipped > 0) record.skipped_steps = health.skipped;
  if (health.roll_backs > 0) {
    record.roll_backs = health.roll_backs;
    record.undone_steps = health.undone;
  }
  record.peak_resident_bytes = std::max(record.peak_resident_bytes, peak_resident_bytes());
  if (run_.device_memory) {
    record.peak_device_bytes =
        std::max(record.peak_device_bytes.value_or(0), run_.device_memory->peak_bytes());
  }
  if (!record.val_curve.empty()) {
    record.val = record.val_curve.back();
    record.best_val = *std::ranges::max_element(record.val_curve, {}, &Evaluation::accuracy);
  }
  lra::write_record(record, run_.folder.record());
}

void RunOutput::write_breakdown(const EvaluationResult& tested) const {
  const RunRecord& record = run_.record;
  if (tested.predictions.empty() || tested.summary.step != record.test->step) return;
  AnalysisRecord analysis;
  static_cast<RunIdentity&>(analysis) = record;
  analysis.kind = "breakdown";
  analysis.checkpoint = tested_checkpoint(record);
  analysis.step = record.test->step;
  analysis.split = "test";
  analysis.num_examples = record.test->num_examples;
  analysis.data_checks = record.data_checks;
  add_warnings_of(record, analysis);
  analysis.breakdown = breakdown_of(tested, run_.config, *run_.task, run_.dataset, "test");
  analysis.provenance = record.provenance;
  make_folder(run_.folder.analysis());
  write_analysis(analysis, run_.folder.analysis() + "/breakdown.json");
}

void RunOutput::finish(RunStatus status, const std::string& failure,
                       const EvaluationResult& tested) {
  RunRecord& record = run_.record;
  record.status = status;
  record.failure = failure;
  // The seconds of a shorter run say nothing anyway.
  if (run_.options.device.is_cpu() && run_.ranks.count() == 1 && others_.seconds() > 60 &&
      others_.disturb(num_threads())) {
    add_warning(record,
                "other programs or runs computed on the same processors: speed and times are not "
                "those of an idle machine");
  }
  const bool is_done = status == RunStatus::kDone;
  if (is_done) record.weights_hash = weights_hash(run_.parameters);
  if (is_done && run_.ranks.is_first()) {
    if (!run_.config.train.is_masked()) {  // baselines of a task are classifiers
      for (const checks::Baseline& baseline : tasks::baselines_of(*run_.task, run_.dataset)) {
        record.baselines[baseline.name] = baseline.accuracy;
      }
    }
    for (const std::string& warning : selection_warnings(record)) add_warning(record, warning);
  }
  record.provenance.finished_utc = utc_now();
  // Logged before the record is written: nothing is added to a run that is done. A run that is
  // killed in between is tested once more, and its log then begins without this line.
  if (log_ && is_done) log_->evaluation("test", *record.test);
  if (log_) log_->sync();
  write_record();
  if (is_done && run_.ranks.is_first()) write_breakdown(tested);
  if (log_ && status != RunStatus::kStopped) log_->ended(is_done);
}

}  // namespace lra::training
