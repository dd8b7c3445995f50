// Judges whether a record can be believed: the same for a report, its cards and its --check, for a
// run that is done and is asked for once more, and for the status of a suite.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lra::training {

// One line for each fact that this program would have written differently given the settings and
// the data's size in the record: division, published setting, parameters, titles, task version,
// validation, planned steps, source of the data, warnings. The record of a Python class is checked
// only if the class can be imported. Settings that no run of this program can have are also a
// finding.
std::vector<std::string> check_settings(const RunRecord& record);

// All findings against the record in the file `path`: check_record, check_metrics_beside,
// check_settings, and doubts stored with its data, if it is available. Empty for a credible record.
std::vector<std::string> record_findings(const RunRecord& record, const std::string& path);

}  // namespace lra::training
