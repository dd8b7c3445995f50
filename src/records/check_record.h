// Checks that a record can be true and agrees with the log of its run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "records/findings.h"
#include "records/run_record.h"

namespace lra {

// One line for each contradiction within a record: hashes that are not those of the settings,
// settings that name another run, accuracies that are no share of their examples, validations that
// the settings do not ask for, a test of other weights than the settings name, more steps than were
// planned, figures that do not follow from each other. Empty for a record that agrees with itself.
// Division and size need the model: see training/record_findings.h.
std::vector<std::string> check_record(const RunRecord& record);

// True if `share`, 0 to 1, is a whole number of `count`.
bool is_share(double share, int64_t count);

// Adds the contradictions among the evaluations of a training run.
void check_evaluations(const RunRecord& record, Findings& findings);

// One line for each figure of a training run's record that its metrics.jsonl, given as text,
// contradicts: validations, test and speed, and for a run that is done also the steps and what one
// side lacks. The log of a run that is not done may be ahead of its record. The last line of a step
// counts, and lines that cannot be read are left out, as when a run is resumed.
std::vector<std::string> check_metrics(const RunRecord& record, std::string_view metrics);

// The same with the metrics.jsonl beside a file called record.json. Empty for a record of another
// name or kind, or without such a log. A log that cannot be opened is a finding.
std::vector<std::string> check_metrics_beside(const RunRecord& record,
                                              const std::string& record_path);

// A record without contradictions, within itself or with the log beside it. Throws lra::Error that
// names the first.
RunRecord read_consistent_record(const std::string& path);

// Throws lra::Error that names the first of `findings`, if there are any. `path`: the record.
void refuse_findings(const std::vector<std::string>& findings, const std::string& path);

}  // namespace lra
