// Warnings of a record that follow from its other content, so that a record without them must have
// been edited.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"
#include "training/settings/run_config.h"

namespace lra::training {

// Examples of which a sequence is longer than the task reads.
int64_t count_longer(const Split& split, const TaskShape& shape);

// Controls, which a run may have been left with, and examples that task.length cuts, if it is below
// the preset's: what decides their label may be gone.
std::vector<std::string> setting_warnings(const RunConfig& config, const tasks::Task& task,
                                          const Dataset& dataset);

// Weights that are the best on the split they are then tested on.
std::vector<std::string> selection_warnings(const RunRecord& record);

}  // namespace lra::training
