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

// Examples that task.length cuts, if it is below the preset's: the task does not cut them, and what
// decides their label may be gone. One sentence; empty if there are none.
std::string cut_warning(const RunConfig& config, const tasks::Task& task, const Dataset& dataset);

// Settings at which hardly anything is learned: weights that decay by a tenth at every step,
// dropout of 80 % (the share that is kept?). And controls, which a run may have been left with.
std::vector<std::string> setting_warnings(const RunConfig& config);

// A loss of over ten times that of equal probabilities: training diverged.
std::vector<std::string> loss_warnings(const RunRecord& record, int64_t num_classes);

// Weights that are the best on the split they are then tested on.
std::vector<std::string> selection_warnings(const RunRecord& record);

}  // namespace lra::training
