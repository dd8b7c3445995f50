// Fills the Provenance of a run record with what this program and machine know of themselves.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lra {

// Version, git revision and dirty state (baked in at build time), compiler, processor, ISA, system,
// threads, start time and `command` (argv). The caller sets torch_version, device and kernels, and
// finished_utc at the end.
Provenance make_provenance(const std::vector<std::string>& command);

}  // namespace lra
