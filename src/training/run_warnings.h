// Warnings of a record that follow from its other content, so that a record without them must have
// been edited.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"
#include "training/run_config.h"

namespace lra::training {

// Data of another size than the task's. `record` has its data_examples.
std::vector<std::string> size_warnings(const RunConfig& config, const RunRecord& record);

// The same in words, for settings of the task and the source of the data; empty for its own size.
std::string size_doubt(const ConfigTable& task_settings, const std::string& data_source,
                       const SplitSizes& data);

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

// Trivial classifiers that are nearly always right, or right less often than by chance.
std::vector<std::string> baseline_warnings(const RunRecord& record, int64_t num_classes);

// The same weights are right far less often on test than on validation, by 15 percentage points and
// five standard errors, or far more often, by 25.
std::vector<std::string> test_warnings(const RunRecord& record);

// Weights that are the best on the split they are then tested on.
std::vector<std::string> selection_warnings(const RunRecord& record);

}  // namespace lra::training
