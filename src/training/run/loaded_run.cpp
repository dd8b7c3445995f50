#include "training/run/loaded_run.h"

#include <algorithm>
#include <filesystem>

#include "base/quoted.h"
#include "data/files.h"
#include "io/atomic_file.h"
#include "mixers/python_layer.h"
#include "tasks/prepare_data.h"
#include "training/run/data_root.h"
#include "training/run/stored_run.h"

namespace lra::training {

namespace fs = std::filesystem;

namespace {
constexpr const char* kWeightsFile = "model.safetensors";
}  // namespace

bool is_exported(const std::string& run) {
  std::error_code ignored;
  return fs::is_regular_file(run + "/" + kWeightsFile, ignored) &&
         !fs::exists(RunFolder{run}.checkpoints(), ignored);
}

std::string tested_checkpoint(const RunRecord& record) {
  if (record.status != RunStatus::kDone || record.checkpoint == "last") return "last";
  return record.checkpoint == "best" ? "best" : "step_" + std::to_string(record.test->step);
}

std::string checkpoint_file(const std::string& run, const std::string& checkpoint) {
  std::error_code ignored;
  const bool is_path = checkpoint.find_first_of("./") != std::string::npos;
  if (is_path &&
      (checkpoint.ends_with(".safetensors") || fs::is_regular_file(checkpoint, ignored))) {
    return checkpoint;
  }
  if (checkpoint.find('/') != std::string::npos && fs::is_directory(checkpoint, ignored)) {
    return checkpoint + "/" + kWeightsFile;
  }
  if (is_exported(run)) return run + "/" + kWeightsFile;
  const std::string name = checkpoint == "last" ? "latest" : checkpoint;
  return RunFolder{run}.checkpoints() + "/" + name + "/" + kWeightsFile;
}

namespace {

StoredRun read_run_for(const std::string& folder, ModelPrecision precision) {
  StoredRun stored = read_run({folder});
  if (precision == ModelPrecision::kFloat32) stored.config.train.precision = "fp32";
  return stored;
}

// The checkpoints that lie next to a missing one, as --checkpoint names them.
[[noreturn]] void refuse_missing(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path().parent_path();
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (fs::exists(entry.path() / kWeightsFile, ignored))
      names.push_back(name == "latest" ? "last" : name);
  }
  std::ranges::sort(names);
  throw Error(
      {.where = file,
       .what = "there is no such file",
       .expected = names.empty() ? "a run with checkpoints" : "one of " + quoted_list(names, 12),
       .advice = names.empty() ? "" : "name it with --checkpoint"});
}

LoadedWeights weights_of(const std::string& file, bool foreign, const RunRecord& run,
                         FlatParameters& parameters) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) refuse_missing(file);
  if (foreign) return load_weights(file, parameters, {});
  LoadedWeights found = load_weights(file, parameters, identities_of(run));
  refuse_other_weights(file, found, run);
  return found;
}

// "the source of my_layers:Mine changed since the run"; empty if it did not.
std::string changed_code_of(const StoredRun& run) {
  const std::optional<PythonCode>& code = run.record.python;
  const std::string& name = run.config.model;
  if (!code || mixers::python_source(name).source_sha256 == code->source_sha256) return "";
  return "the source of " + name + " changed since the run";
}

// The weights of a run, whose class may have other parameters by now.
LoadedWeights weights_of(const std::string& file, bool foreign, const StoredRun& run,
                         FlatParameters& parameters) {
  try {
    return weights_of(file, foreign, run.record, parameters);
  } catch (const Error& error) {
    const std::string changed = changed_code_of(run);
    if (changed.empty()) throw;
    throw Error(
        {.where = run.config.model, .what = changed + ": " + error.what(), .code = error.code()});
  }
}

// The run has ended in order, so that its record and its checkpoints are of the same moment.
bool has_settled(const RunRecord& run) {
  return run.status == RunStatus::kDone ||
         (run.status == RunStatus::kStopped && run.failure.empty());
}

// The step of the weights in a folder of this name; nothing if the record does not say.
std::optional<int64_t> recorded_step(const std::string& folder, const RunRecord& run) {
  if (!has_settled(run)) return {};
  if (folder == "latest") return run.steps;
  return folder == "best" && run.best_val ? std::optional(run.best_val->step) : std::nullopt;
}

// The word for the weights in a folder that 'lra export' wrote, which may be of any step. Throws
// lra::Error if other ones are asked for.
std::string exported_checkpoint(const std::string& folder, const RunRecord& run, int64_t step,
                                const std::string& asked) {
  const std::string own = "step_" + std::to_string(step);
  const auto is_own = [&](const std::string& name) {
    return name == own || (name == "last" && step == run.steps) ||
           (name == "best" && run.best_val && step == run.best_val->step);
  };
  const std::string tested = tested_checkpoint(run);
  if (asked.empty()) return is_own(tested) ? tested : own;
  if (is_own(asked) || asked.find_first_of("./") != std::string::npos) return asked;
  throw Error({.where = folder,
               .what = "holds only the weights of step " + std::to_string(step) + ", not " + asked,
               .advice = "leave --checkpoint out, or name the folder of the run"});
}

}  // namespace

void refuse_other_weights(const std::string& file, const LoadedWeights& found,
                          const RunRecord& run) {
  const std::string folder = fs::path(file).parent_path().filename();
  const int64_t step = found.progress.step;
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw Error({.where = file,
                 .what = what,
                 .expected = expected,
                 .advice = "restore checkpoints/" + folder +
                           " and record.json of the same run, or "
                           "name another step with --checkpoint step_N"});
  };
  const std::string weights = "holds the weights of step " + std::to_string(step);
  if (const auto recorded = recorded_step(folder, run); recorded && *recorded != step) {
    refuse(weights, "those of step " + std::to_string(*recorded) + ", as record.json says");
  }
  if (folder == "best" && found.progress.best_step != step) {
    refuse(weights,
           "those of its best validation, step " + std::to_string(found.progress.best_step));
  }
  const int64_t hashed_step = run.test ? run.test->step : run.steps;
  if (has_settled(run) && step == hashed_step && found.hash != run.weights_hash) {
    refuse(weights + " with the hash " + found.hash, run.weights_hash + ", as record.json says");
  }
}

namespace {

// The accuracy next to exported weights looks like theirs.
void refuse_untested_weights(const std::string& file, int64_t step, const RunRecord& run) {
  if (!run.test || run.test->step == step) return;
  throw Error({.where = file,
               .what = "holds the weights of step " + std::to_string(step),
               .expected = "those of step " + std::to_string(run.test->step) +
                           ", which the accuracy in record.json is of",
               .advice = "export the run without --checkpoint"});
}

}  // namespace

std::vector<std::string> check_checkpoints_beside(const RunRecord& run,
                                                  const std::string& record_path) {
  if (run.kind != "train" || fs::path(record_path).filename() != "record.json") return {};
  std::vector<std::string> findings, names = {"best", "latest"};
  if (run.test) names.push_back("step_" + std::to_string(run.test->step));
  const bool exported = is_exported(folder_of(record_path));
  if (exported) names = {"latest"};  // the one file that there is
  for (const std::string& name : names) {
    const std::string file = checkpoint_file(folder_of(record_path), name);
    if (!is_there(file)) continue;
    try {
      const LoadedWeights found = describe_weights(file, identities_of(run));
      refuse_other_weights(file, found, run);
      if (exported) refuse_untested_weights(file, found.progress.step, run);
    } catch (const Error& error) {
      findings.push_back(error.what());
    }
  }
  return findings;
}

LoadedRun::LoadedRun(const std::string& folder, const WeightsChoice& choice,
                     ModelPrecision precision, at::Device device)
    : folder(folder),
      stored(read_run_for(folder, precision)),
      checkpoint(choice.checkpoint.empty() ? tested_checkpoint(stored.record) : choice.checkpoint),
      task(stored.config.make_task()),
      model(stored.config.make_any_model(task->shape(), device)),
      parameters(*model, FlatUse::kInference),
      weights(weights_of(checkpoint_file(folder, checkpoint), choice.foreign, stored, parameters)) {
  if (!is_exported(folder)) return;
  checkpoint = exported_checkpoint(folder, stored.record, weights.progress.step, choice.checkpoint);
}

const models::SequenceClassifier& LoadedRun::encoder() const {
  if (stored.config.is_whole_model()) refuse_whole_model(stored.config.model);
  return dynamic_cast<const models::SequenceClassifier&>(*model);
}

std::string LoadedRun::changed_code() const { return changed_code_of(stored); }

std::string LoadedRun::foreign_weights() const {
  if (!weights.run) return "a run that the file does not name";
  return is_one_of(*weights.run, identities_of(stored.record)) ? "" : text_of(*weights.run);
}

Dataset open_run_data(const LoadedRun& run, const RunDataOptions& options) {
  const tasks::TaskSpec& spec = run.stored.config.task_spec();
  const std::string root = data_root_of({run.folder}, options.root);
  if (!options.other_data) {
    refuse_lost_data(spec, *run.task, root, run.stored.record);
  } else if (!tasks::data_found(spec, *run.task, root)) {
    // A user who names other data does not mean generated data.
    throw Error({.where = root,
                 .what = "no data for " + std::string(spec.name),
                 .expected = std::string(spec.sources),
                 .advice = "name its folder with --data"});
  }
  Dataset dataset = tasks::prepare_data(
      spec, *run.task, root, options.quiet,
      options.other_data ? tasks::OtherSettings::kTaken : tasks::OtherSettings::kRefused);
  // A score belongs to the data that the run was made with.
  if (options.other_data) return dataset;
  refuse_other_data(dataset, {run.folder}, run.stored.record,
                    "name the right folder with --data, or pass --other-data");
  return dataset;
}

EvaluationResult evaluate_run(const LoadedRun& run, const Dataset& dataset,
                              const std::string& split, int64_t limit, bool quiet,
                              bool all_probabilities) {
  const auto& config = run.stored.config;
  auto result = evaluate_with_bar(*run.model, config.split_of(*run.task, dataset, split),
                                  run.task->shape(), config.train.eval_batch_size, limit,
                                  {.description = split, .unit = "ex", .quiet = quiet},
                                  config.train.trim_padding, config.masking(), all_probabilities);
  result.summary.step = run.weights.progress.step;
  return result;
}

}  // namespace lra::training
