// Judges whether a record can be believed: the same for a report, its cards and its --check, for a
// run that is done and is asked for once more, and for the status of a suite.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lra::training {

// One line for each thing that this program would have written otherwise from the settings and the
// data's size in the record: division, published setting, parameters, titles, task version,
// validation, planned steps, source of the data, warnings. The record of a Python class is judged
// where the class can be made: nothing is said of one elsewhere. That a record's settings are not
// those of a run of this program is a finding.
std::vector<std::string> check_settings(const RunRecord& record);

// All that speaks against the record in the file `path`: check_record, check_metrics_beside,
// check_settings, and doubts about its data that the data itself states, if it is at hand. Empty
// for a record that can be believed.
std::vector<std::string> record_findings(const RunRecord& record, const std::string& path);

}  // namespace lra::training
