// The folder that holds a run's data.
#pragma once

#include <optional>
#include <string>

#include "data/scaling.h"
#include "records/run_record.h"
#include "tasks/prepare_data.h"
#include "tasks/task.h"
#include "training/settings/run_config.h"
#include "training/settings/run_folder.h"

namespace lra::training {

// `given`, else tasks::default_data_root().
std::string data_root(const std::string& given);

// resolve_run() for a task on the data under `root` (tasks::task_on_data), whose settings have
// lower priority than `overrides` and `sets`.
RunConfig resolve_on_data(const std::string& task, const std::string& model,
                          const std::string& preset, uint64_t seed, const std::string& root,
                          const ConfigTable& overrides, const std::vector<std::string>& sets);
// The same where the settings of the data are known.
RunConfig resolve_on_data(const tasks::TaskOnData& on, const std::string& model,
                          const std::string& preset, uint64_t seed, const std::string& root,
                          const ConfigTable& overrides, const std::vector<std::string>& sets);

// Data root of an existing run: `given`, else the root that it was last trained with if that still
// exists, else as data_root().
std::string data_root_of(const RunFolder& run, const std::string& given);

// Written next to the record, not into it: records are passed on, and paths are private.
void remember_data_root(const RunFolder& run, const std::string& root);

// Throws lra::Error, exit code 2, when the data of that run would have to be generated and cannot
// be: it was imported, or has another number of examples than the task would make.
void refuse_lost_data(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& root,
                      const RunRecord& record);

// Examples of `split` that are equal to training examples of the run in this folder; nothing if the
// data that it was trained on is not at hand, or was standardized otherwise.
std::optional<int64_t> count_trained_on(const RunFolder& run, const RunRecord& record,
                                        const ScaledSplit& split);

// Throws lra::Error, exit code 2, with this advice if `dataset` is not the data of the run.
void refuse_other_data(const Dataset& dataset, const RunFolder& run, const RunRecord& record,
                       const std::string& advice);

}  // namespace lra::training
