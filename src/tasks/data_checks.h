// The checks (checks/check_table.h) of a task's data, and its baselines: from the manifest where
// the import stored them.
#pragma once

#include <string>
#include <vector>

#include "base/check_finding.h"
#include "tasks/task.h"

namespace lra::tasks {

// Accuracies of the task's trivial classifiers on this data. Those of the import, if it read as
// much of the sequences and of the splits as `task` does.
std::vector<checks::Baseline> baselines_of(const Task& task, const Dataset& dataset);

// Findings of the checks of imported data, and of those of the settings of `task`. Data that an
// earlier program imported is checked now. Empty for generated data.
std::vector<CheckFinding> checks_of(const Task& task, const Dataset& dataset);

// Writes baselines and findings into the manifest of a dataset that was just imported, the warnings
// of the checks `accepted` as such. Throws lra::Error for an error.
void store_checks(const Task& task, const Dataset& dataset, std::vector<checks::SharedGroup> groups,
                  const std::vector<std::string>& accepted);

}  // namespace lra::tasks
