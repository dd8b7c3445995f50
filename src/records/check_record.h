// Checks that a record can be true and agrees with the log of its run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "records/findings.h"
#include "records/run_record.h"

namespace lra {

// One line for each contradiction within a record: hashes that are not those of the settings,
// settings that name another run, accuracies that are not a share of their examples, validations
// that the settings do not schedule, a test of other weights than the settings name, more steps
// than planned, figures that do not follow from each other. Empty for a consistent record. Division
// and size need the model: see training/record_findings.h.
std::vector<std::string> check_record(const RunRecord& record);

// True if `share`, 0 to 1, is a whole number of `count`.
bool is_share(double share, int64_t count);

// Adds the contradictions among the evaluations of a training run.
void check_evaluations(const RunRecord& record, Findings& findings);

// One line for each figure of a training run's record that its metrics.jsonl, given as text,
// contradicts: validations, test and speed, and for a run that is done also the steps and entries
// missing on one side. The log of a run that is not done may be ahead of its record. The last line
// of a step counts, and unreadable lines are skipped, as when a run is resumed.
std::vector<std::string> check_metrics(const RunRecord& record, std::string_view metrics);

// The same with the metrics.jsonl next to a file named record.json. Empty for a record of another
// name or kind, or without such a log. A log that cannot be opened is a finding.
std::vector<std::string> check_metrics_beside(const RunRecord& record,
                                              const std::string& record_path);

// Reads a record without contradictions, within itself or with the log next to it. Throws an
// lra::Error that names the first contradiction.
RunRecord read_consistent_record(const std::string& path);

// Throws lra::Error that names the first of `findings`, if there are any. `path`: the record.
void refuse_findings(const std::vector<std::string>& findings, const std::string& path);

}  // namespace lra
