#include "training/loaded_run.h"

#include <algorithm>
#include <filesystem>

#include "tasks/prepare_data.h"
#include "training/data_root.h"

namespace lra::training {

namespace {
constexpr const char* kWeightsFile = "model.safetensors";
}  // namespace

bool is_exported(const std::string& run) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(run + "/" + kWeightsFile, ignored) &&
         !std::filesystem::exists(RunFolder{run}.checkpoints(), ignored);
}

std::string tested_checkpoint(const RunRecord& record) {
  return record.status == RunStatus::kDone && record.checkpoint != "last" ? "best" : "last";
}

std::string checkpoint_file(const std::string& run, const std::string& checkpoint) {
  if (checkpoint.ends_with(".safetensors")) return checkpoint;
  std::error_code ignored;
  if (checkpoint.find('/') != std::string::npos &&
      std::filesystem::is_directory(checkpoint, ignored)) {
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

LoadedWeights weights_of(const std::string& folder, const WeightsChoice& choice,
                         const RunRecord& run, FlatParameters& parameters) {
  const auto expected = choice.foreign ? std::vector<RunIdentity>{} : identities_of(run);
  return load_weights(checkpoint_file(folder, choice.checkpoint), parameters, expected);
}

}  // namespace

LoadedRun::LoadedRun(const std::string& folder, const WeightsChoice& choice,
                     ModelPrecision precision, at::Device device)
    : folder(folder),
      stored(read_run_for(folder, precision)),
      task(stored.config.make_task()),
      model(stored.config.make_model(task->shape(), device)),
      parameters(model, FlatUse::kInference),
      weights(weights_of(folder, choice, stored.record, parameters)) {}

std::string LoadedRun::foreign_weights() const {
  if (!weights.run) return "a run that the file does not name";
  const std::vector<RunIdentity> own = identities_of(stored.record);
  return std::ranges::find(own, *weights.run) == own.end() ? text_of(*weights.run) : "";
}

tasks::Dataset open_run_data(const LoadedRun& run, const RunDataOptions& options) {
  const tasks::TaskSpec& spec = run.stored.config.task_spec();
  const std::string root = data_root_of({run.folder}, options.root);
  if (!options.other_data) {
    refuse_lost_data(spec, *run.task, root, run.stored.record);
  } else if (!tasks::data_found(spec, *run.task, root)) {
    // Generated data is not what somebody has in mind who names other data.
    throw Error({.where = root,
                 .what = "no data for " + std::string(spec.name),
                 .expected = std::string(spec.sources),
                 .advice = "name its folder with --data"});
  }
  tasks::Dataset dataset = tasks::prepare_data(
      spec, *run.task, root, options.quiet,
      options.other_data ? tasks::OtherSettings::kTaken : tasks::OtherSettings::kRefused);
  // A score belongs to the data that the run was made with.
  if (options.other_data) return dataset;
  refuse_other_data(dataset, {run.folder}, run.stored.record,
                    "name the right folder with --data, or say --other-data");
  return dataset;
}

EvaluationResult evaluate_run(const LoadedRun& run, const tasks::Dataset& dataset,
                              const std::string& split, int64_t limit, bool quiet) {
  const auto& config = run.stored.config;
  auto result = evaluate_with_bar(run.model, config.split_of(*run.task, dataset, split),
                                  run.task->shape(), config.train.eval_batch_size, limit,
                                  {.description = split, .unit = "ex", .quiet = quiet},
                                  config.train.trim_padding);
  result.summary.step = run.weights.progress.step;
  return result;
}

}  // namespace lra::training
