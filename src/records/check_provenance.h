// Checks where and when a result says it was made.
#pragma once

#include "records/findings.h"
#include "records/run_record.h"

namespace lra {

// Adds impossible facts: no threads, a list of ranks with a single rank, invalid times or an end
// before the start, a finished run without an end.
void check_provenance(const RunRecord& record, Findings& findings);

}  // namespace lra
