#include "training/new_record.h"

#include "base/hash.h"
#include "training/budget.h"
#include "training/fairness.h"

namespace lra::training {
namespace {

std::string fingerprint(const RunRecord& record) {
  return to_hex(
      hash128(record.config_hash + record.data_hash + std::to_string(record.task_version)));
}

}  // namespace

std::string config_hash(const RunConfig& config) {
  return to_hex(hash128(canonical_text(config.to_table())));
}

RunRecord new_record(const RunConfig& config, const tasks::Task& task,
                     const tasks::Dataset& dataset, const Provenance& provenance) {
  RunRecord record;
  const Fairness fairness = judge(config);
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
  record.config_hash = config_hash(config);
  record.fingerprint = fingerprint(record);
  record.num_parameters = fairness.parameters;
  record.base_parameters = fairness.base_parameters;
  record.division = fairness.division;
  record.division_reason = fairness.reason;
  record.planned_steps = planned_steps(config.train, task.split(dataset, "train").size());
  record.preset_steps = preset_steps(config);
  record.test_split_examples = task.split(dataset, "test").size();
  record.provenance = provenance;
  return record;
}

}  // namespace lra::training
