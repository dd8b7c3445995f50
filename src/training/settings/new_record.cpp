#include "training/settings/new_record.h"

#include <algorithm>

#include "mixers/python_layer.h"
#include "training/settings/budget.h"
#include "training/settings/fairness.h"
#include "training/settings/presets.h"
#include "training/settings/self_pretraining.h"

namespace lra::training {

void add_warning(RunRecord& record, const std::string& text) {
  auto& warnings = record.warnings ? *record.warnings : record.warnings.emplace();
  if (std::ranges::find(warnings, text) == warnings.end()) warnings.push_back(text);
}

SplitSizes sizes_of(const Dataset& dataset) {
  const auto size = [&](const char* split) {
    return dataset.has(split) ? dataset.split(split).size() : 0;
  };
  return {.train = size("train"), .val = size("val"), .test = size("test")};
}

RunIdentity identity_of(const RunConfig& config, const std::string& data_hash) {
  RunIdentity run{.task = config.task,
                  .task_title = config.task_title(),
                  .task_version = config.task_spec().version,
                  .model = config.model,
                  .model_title = config.model_title(),
                  .preset = config.preset,
                  .seed = config.seed,
                  .config_hash = config_hash(config.to_table()),
                  .data_hash = data_hash};
  if (data_hash.empty()) return run;
  run.fingerprint = run_fingerprint(run.config_hash, data_hash, run.task_version);
  return run;
}

RunRecord record_of(const RunConfig& config, const Provenance& provenance,
                    const std::string& data_hash, const std::optional<SplitSizes>& data,
                    std::optional<InitialWeights> initial_weights, const std::string& edited) {
  RunRecord record =
      judge(config, data, self_pretraining(config, data_hash, initial_weights), edited);
  static_cast<RunIdentity&>(record) = identity_of(config, data_hash);
  record.data_examples = data;
  record.initial_weights = std::move(initial_weights);
  record.config = config.to_table();
  record.provenance = provenance;
  if (!edited.empty()) add_warning(record, kEditedPresets + edited);
  if (mixers::is_python_class(config.model)) {
    const mixers::PythonSource source = mixers::python_source(config.model);
    record.python = {.source_sha256 = source.source_sha256, .packages = source.packages};
  }
  return record;
}

RunRecord new_record(const RunConfig& config, const tasks::Task& task, const Dataset& dataset,
                     const Provenance& provenance, std::optional<InitialWeights> initial_weights,
                     const std::string& edited) {
  RunRecord record = record_of(config, provenance, dataset.hash(), sizes_of(dataset),
                               std::move(initial_weights), edited);
  if (mixers::is_python_class(config.model)) {
    for (const std::string& fault : mixers::python_faults(config.model, task.shape().has_padding,
                                                          config.train.precision == "bf16")) {
      add_warning(record, "forward of " + config.model + " " + fault);
    }
  }
  record.validation = task.validation();
  record.checkpoint = config.train.test_checkpoint;
  record.data_source = dataset.manifest().source;
  record.preset_steps = preset_steps(config).value_or(0);
  record.planned_steps = planned_steps(config.train, task.split(dataset, "train").size());
  record.test_split_examples = task.split(dataset, "test").size();
  return record;
}

}  // namespace lra::training
