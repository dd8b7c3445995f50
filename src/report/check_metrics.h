// Whether a record says what the log of its run says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"

namespace lra::report {

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
