#include "training/new_record.h"

#include "records/fingerprint.h"
#include "training/budget.h"
#include "training/fairness.h"

namespace lra::training {
namespace {

SplitSizes sizes_of(const tasks::Dataset& dataset) {
  const auto size = [&](const char* split) {
    return dataset.has(split) ? dataset.split(split).size() : 0;
  };
  return {.train = size("train"), .val = size("val"), .test = size("test")};
}

}  // namespace

RunRecord new_record(const RunConfig& config, const tasks::Task& task,
                     const tasks::Dataset& dataset, const Provenance& provenance) {
  RunRecord record;
  record.data_examples = sizes_of(dataset);
  const Fairness fairness = judge(config, record.data_examples);
  record.task = config.task;
  record.task_title = config.task_spec().title;
  record.task_version = config.task_spec().version;
  record.model = config.model;
  record.model_title = config.mixer_spec().title;
  record.preset = config.preset;
  record.seed = config.seed;
  record.validation = task.validation();
  record.checkpoint = config.train.test_checkpoint;
  record.data_source = dataset.manifest().source;
  record.data_hash = dataset.hash();
  record.config = config.to_table();
  record.config_hash = config_hash(record.config);
  record.fingerprint = run_fingerprint(record.config_hash, record.data_hash, record.task_version);
  record.num_parameters = fairness.parameters;
  record.base_parameters = fairness.base_parameters;
  record.division = fairness.division;
  record.division_reason = fairness.reason;
  record.published_setting = fairness.published_setting;
  record.planned_steps = planned_steps(config.train, task.split(dataset, "train").size());
  record.preset_steps = preset_steps(config);
  record.test_split_examples = task.split(dataset, "test").size();
  record.provenance = provenance;
  return record;
}

}  // namespace lra::training
