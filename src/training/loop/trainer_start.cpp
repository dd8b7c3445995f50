// Start of a run, or its resume.
#include <algorithm>
#include <iterator>

#include "base/clock.h"
#include "base/command_text.h"
#include "base/resources.h"
#include "base/text_format.h"
#include "checks/check_table.h"
#include "io/atomic_file.h"
#include "tasks/data_origin.h"
#include "training/loop/class_metrics.h"
#include "training/loop/trainer.h"
#include "training/run/disk_space.h"
#include "training/run/loaded_run.h"
#include "training/run/memory_estimate.h"
#include "training/settings/data_root.h"
#include "training/settings/run_warnings.h"

namespace lra::training {

std::string go_on_command(const RunFolder& folder, at::Device device) {
  std::vector<std::string> words = {"train", "--resume", folder.path};
  if (!device.is_cpu()) words.insert(words.end(), {"--device", device.str()});
  return command_text(words);
}

Trainer::Trainer(PreparedRun run, Ranks& ranks)
    : config_(std::move(run.config)),
      folder_(std::move(run.folder)),
      ranks_(ranks),
      options_(std::move(run.options)),
      task_(std::move(run.task)),
      dataset_(std::move(run.dataset)),
      shape_(run.shape),
      device_memory_(std::move(run.device_memory)),
      model_(std::move(run.model)),
      parameters_(*model_),
      record_(std::move(run.record)),
      before_(std::move(run.before)),
      checkpoints_(folder_.checkpoints(), config_.train.keep_checkpoints, identities_of(record_)),
      stepper_(*model_, parameters_, config_.train, config_.seed, ranks, config_.groups),
      guard_(config_.train),
      agreement_(ranks, [this] { return seconds_so_far(); }),
      profiler_(options_.profile),
      started_(monotonic_seconds()) {
  models::LossSettings loss{.label_smoothing = config_.train.label_smoothing};
  if (config_.train.class_weights == "balanced") {
    const Split train = config_.split_of(*task_, dataset_, "train");
    loss.weights_C = balanced_weights(train, shape_.num_classes).to(model_->device());
  }
  stepper_.set_loss(std::move(loss));
}

void Trainer::begin() {
  // The check comes before anything is written: a run that is refused leaves nothing behind. The
  // estimate covers main memory, where another device does not compute.
  if (config_.train.memory_check != "off" && options_.device.is_cpu()) {
    ranks_.on_first([&] { check_memory(); });
  }
  // The other ranks read files that the first has prepared.
  ranks_.on_first([&] { options_.resume ? resume() : start(); });
  if (options_.resume && !ranks_.is_first()) resume();
  if (ranks_.is_first()) {
    log_.emplace(folder_, progress_.step, options_.resume);
    if (progress_.step == 0) log_->settings(record_.config);
  }
  const Split train = config_.split_of(*task_, dataset_, "train");
  const int64_t parts = config_.train.accumulate;
  loader_ = std::make_unique<BatchLoader>(
      train, shape_, BatchOrder(train.size(), config_.train.batch_size, config_.seed),
      progress_.step,
      LoaderSettings{
          .trim = config_.train.trim_padding,
          .prefetch = config_.train.prefetch,
          .threads = config_.train.loader_threads,
          .parts = {.first = parts * ranks_.rank(), .count = parts, .of = parts * ranks_.count()},
          .masking = config_.masking()});
}

void Trainer::say(const std::string& text) const {
  if (!options_.quiet) print_message(text);
}

void Trainer::record_warning(const std::string& text) {
  auto& warnings = record_.warnings ? *record_.warnings : record_.warnings.emplace();
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(text);
}

void Trainer::check_memory() {
  record_.peak_resident_bytes = peak_resident_bytes();
  // The stepper of only this rank, whose share of a step takes as much memory as that of any other.
  TrainConfig share = config_.train;
  share.accumulate *= ranks_.count();
  share.on_nonfinite = "stop";  // the copies that "skip" needs are there already
  Stepper stepper(*model_, parameters_, share, config_.seed);
  const MemoryEstimate estimate =
      estimate_memory(*model_, stepper, config_.split_of(*task_, dataset_, "train"), shape_, share,
                      config_.seed, config_.masking());
  const int64_t available = memory_left(options_, ranks_);
  if (config_.train.memory_check == "refuse") refuse_without_memory(estimate, available);
  record_.estimated_resident_bytes = estimate.peak_bytes;
  const bool fits = estimate.extra_bytes <= available;
  const std::string text =
      "memory: about " + human_bytes(static_cast<uint64_t>(estimate.peak_bytes)) +
      " for this run, " + human_bytes(static_cast<uint64_t>(estimate.extra_bytes)) +
      " more than now; " + human_bytes(static_cast<uint64_t>(available)) + " are available" +
      (fits ? "" : ", which is too little");
  say(text);
  if (!fits) record_warning(text);
}

void Trainer::start() {
  std::vector<std::string> warnings = record_.warnings.value_or(std::vector<std::string>{});
  std::ranges::move(setting_warnings(config_), std::back_inserter(warnings));
  std::ranges::move(
      tasks::origin_warnings(config_.task_spec(), *task_, options_.data_root, dataset_),
      std::back_inserter(warnings));
  if (std::string cut = cut_warning(config_, *task_, dataset_); !cut.empty()) {
    warnings.push_back(std::move(cut));
  }
  for (const std::string& warning : warnings) {
    say(warning);
    record_warning(warning);
  }
  for (const CheckFinding& finding : record_.data_checks.value_or(std::vector<CheckFinding>{})) {
    say(checks::text_of(finding));
  }
  make_folder(folder_.checkpoints());
  refuse_without_room(folder_, parameters_, config_.train, progress_.step,
                      record_.initial_weights.has_value());
  write_file_atomically(folder_.config(), to_toml(record_.config));
  write_running_record();
  remember_data_root(folder_, options_.data_root);
  // The run resumes from this checkpoint, rolls back to it, and is repeated from it: the file that
  // the weights came from may change.
  if (record_.initial_weights) checkpoints_.save(parameters_, progress_, false);
}

// A record has the hash of weights since the first checkpoint was complete. A run that was killed
// before that starts over: nothing of it was saved.
void Trainer::refuse_lost_checkpoints(std::vector<std::string> problems) {
  if (problems.empty() && record_.initial_weights) {
    problems.push_back("that of step 0, with the weights that the run begins with, is missing");
  }
  if (problems.empty() && !before_->weights_hash.empty()) {
    problems.push_back("those of the " + thousands(before_->steps) + " steps so far are missing");
  }
  if (problems.empty()) return say("it ended before its first checkpoint and starts over");
  throw Error({.where = folder_.checkpoints(),
               .what = "no checkpoint can be read (" + problems.front() + ")",
               .expected = "the run's own",
               .advice = "restore them, or start a new run with another --out (--init-from "
                         "starts it with weights of another)"});
}

void Trainer::resume() {
  LRA_CHECK(before_.has_value());
  const RunRecord& before = *before_;
  if (!is_one_of(before, identities_of(record_))) {
    throw Error({.where = folder_.path,
                 .what = before.data_hash == record_.data_hash
                             ? "the task or config.toml changed since this run began"
                             : "the data changed since this run began",
                 .expected = "data " + before.data_hash + ", settings " + before.config_hash,
                 .advice = "name its data with --data, or start a new run with another --out"});
  }
  if (before.python && record_.python &&
      before.python->source_sha256 != record_.python->source_sha256) {
    record_warning("the source of " + record_.model + " changed while the run was stopped");
  }
  for (const std::string& warning : record_.warnings.value_or(std::vector<std::string>{})) {
    say(warning);
  }
  std::vector<std::string> problems;
  const auto found = checkpoints_.load_latest(parameters_, &problems);
  for (const std::string& warning : before.warnings.value_or(std::vector<std::string>{})) {
    record_warning(warning);
  }
  for (const std::string& problem : problems) {
    const std::string text = "checkpoint skipped: " + problem;
    record_warning(text);
    if (ranks_.is_first()) print_message(text);  // also when quiet: something was lost
  }
  if (!found) refuse_lost_checkpoints(problems);
  if (found && found->computed_tokens < 0) {
    throw Error({.where = folder_.path,
                 .what = "was started by an earlier version, whose dropout patterns differ",
                 .expected = "a run of this version: no seed reproduces a mixture of two",
                 .advice = "finish it with the version that started it, or start a new run with "
                           "another --out; 'lra eval' accepts its weights"});
  }
  if (ranks_.is_first()) {
    remove_temporaries(folder_.path);
    remember_data_root(folder_, options_.data_root);
  }
  if (found) {
    progress_ = *found;
    record_.weights_hash = weights_hash(parameters_);
    const std::string file =
        checkpoints_.folder_of("step_" + std::to_string(found->step)) + "/model.safetensors";
    refuse_other_weights(file, {.progress = *found, .hash = record_.weights_hash}, before);
    if (ranks_.is_first()) {
      checkpoints_.repair_links(progress_);
      refuse_without_room(folder_, parameters_, config_.train, progress_.step,
                          record_.initial_weights.has_value());
    }
  }
  for (const Evaluation& evaluation : before.val_curve) {
    if (evaluation.step <= progress_.last_eval_step) record_.val_curve.push_back(evaluation);
  }
  if (found) {
    record_.train_seconds = before.train_seconds;
    earlier_seconds_ = before.total_seconds;
    record_.peak_resident_bytes = std::max(record_.peak_resident_bytes, before.peak_resident_bytes);
    if (device_memory_) record_.peak_device_bytes = before.peak_device_bytes;
  }
  logged_seconds_ = record_.train_seconds;
  logged_tokens_ = progress_.tokens;
  logged_step_ = progress_.step;
  if (!record_.earlier_parts || !ranks_.is_first()) return;
  for (EarlierPart& part : *record_.earlier_parts)
    part.steps = std::min(part.steps, progress_.step);
  write_running_record();  // before the settings: see read_run
  write_file_atomically(folder_.config(), to_toml(record_.config));
}

}  // namespace lra::training
