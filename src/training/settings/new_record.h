// Creation of records: the only place that fills in their facts about settings and data.
#pragma once

#include "records/run_record.h"
#include "tasks/task.h"
#include "training/settings/run_config.h"

namespace lra::training {

// Adds a warning, unless the record has it already.
void add_warning(RunRecord& record, const std::string& text);

// The examples of its splits; 0 for one that it does not have.
SplitSizes sizes_of(const Dataset& dataset);

// `data_hash`: empty where no data was read.
RunIdentity identity_of(const RunConfig& config, const std::string& data_hash = "");

// A record of only the settings and initial weights: identity, size, division. `edited` is the
// result of edited_presets(), or of edited_presets_of() for a record that exists.
RunRecord record_of(const RunConfig& config, const Provenance& provenance,
                    const std::string& data_hash = "", const std::optional<SplitSizes>& data = {},
                    std::optional<InitialWeights> initial_weights = {},
                    const std::string& edited = "");

// The record of a run that is about to begin: all that is known before the first step.
RunRecord new_record(const RunConfig& config, const tasks::Task& task, const Dataset& dataset,
                     const Provenance& provenance,
                     std::optional<InitialWeights> initial_weights = {},
                     const std::string& edited = "");

}  // namespace lra::training
