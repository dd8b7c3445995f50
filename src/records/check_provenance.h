// Checks where and when a result says it was made.
#pragma once

#include "records/findings.h"
#include "records/run_record.h"

namespace lra {

// Adds what cannot be: no threads, ranks of which there is one, times that are none or end before
// they begin, a finished run without an end.
void check_provenance(const RunRecord& record, Findings& findings);

}  // namespace lra
