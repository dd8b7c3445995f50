#include "training/run/loaded_run.h"

#include <algorithm>
#include <filesystem>

#include "base/quoted.h"
#include "data/files.h"
#include "mixers/python_layer.h"
#include "tasks/prepare_data.h"
#include "training/run/make_model.h"
#include "training/settings/data_root.h"
#include "training/settings/stored_run.h"

namespace lra::training {

namespace fs = std::filesystem;

namespace {

StoredRun read_run_for(const std::string& folder, ModelPrecision precision) {
  StoredRun stored = read_run({folder});
  if (precision == ModelPrecision::kFloat32) {
    stored.config.train.precision = "fp32";
    stored.config.train.recompute = false;  // analyses look into the blocks
  }
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
  std::error_code ignored;
  if (!fs::exists(file, ignored)) refuse_missing(file);
  try {
    if (foreign) return load_weights(file, parameters, {});
    LoadedWeights found = load_weights(file, parameters, identities_of(run.record));
    refuse_other_weights(file, found, run.record);
    return found;
  } catch (const Error& error) {
    const std::string changed = changed_code_of(run);
    if (changed.empty()) throw;
    throw Error(
        {.where = run.config.model, .what = changed + ": " + error.what(), .code = error.code()});
  }
}

// The word for the weights in a folder that 'lra export' wrote, which may be of any step. Throws
// lra::Error if other ones are asked for.
std::string exported_checkpoint(const std::string& folder, const RunRecord& run, int64_t step,
                                const std::string& asked) {
  const std::string own = step_name(step);
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

LoadedRun::LoadedRun(const std::string& folder, const WeightsChoice& choice,
                     ModelPrecision precision, at::Device device)
    : folder(folder),
      stored(read_run_for(folder, precision)),
      checkpoint(choice.checkpoint.empty() ? tested_checkpoint(stored.record) : choice.checkpoint),
      task(stored.config.make_task()),
      model(make_any_model(stored.config, task->shape(), device)),
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
