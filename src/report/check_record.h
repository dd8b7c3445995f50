// Checks that a submitted record can be true and agrees with the log of its run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"

namespace lra::report {

// One line for each thing that does not fit: hashes that are not those of the settings, settings
// that name another run, accuracies that are no share of their examples, a best validation that is
// not the best, more steps than were planned. Empty for a record that agrees with itself. What
// needs a model (its division and size) is judged by the caller.
std::vector<std::string> check_record(const RunRecord& record);

// One line for each figure of a training run's record that its metrics.jsonl, given as text,
// contradicts: validations and test, and for a run that is done also the steps and what one side
// lacks. The log of a run that is not done may be ahead of its record. The last line of a step
// counts, and lines that cannot be read are left out, as when a run is resumed.
std::vector<std::string> check_metrics(const RunRecord& record, std::string_view metrics);

// The same with the metrics.jsonl beside a file called record.json. Empty for a record of another
// name or kind, or without such a log. A log that cannot be opened is a finding.
std::vector<std::string> check_metrics_beside(const RunRecord& record,
                                              const std::string& record_path);

}  // namespace lra::report
