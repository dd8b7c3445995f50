// Compares a record with the log of its run, which a record that was copied on its own, or into the
// folder of another run, contradicts.
//
// Not a check for forgery: whoever changes a record, its hash and the log alike is believed until
// `lra reproduce` trains the run again.
#pragma once

#include <string>
#include <string_view>

#include "records/run_record.h"

namespace lra {

// The first validation or test of a training run that its metrics.jsonl, given as text, states
// otherwise or, if the run is done, lacks; empty if there is none. The log of a run that is not
// done may be ahead of its record. The last line of a step counts, and unreadable lines are
// skipped, as when a run is resumed.
std::string difference_from_log(const RunRecord& record, std::string_view metrics);

// Reads a record, and compares it with the metrics.jsonl next to it if the file is named
// record.json. Throws lra::Error as read_record() does, and for a log that cannot be opened or
// contradicts the record.
RunRecord read_consistent_record(const std::string& path);

}  // namespace lra
