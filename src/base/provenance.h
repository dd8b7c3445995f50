// Fills the Provenance of a run record with what this program and machine know of themselves.
#pragma once

#include <string>
#include <vector>

#include "base/run_record.h"

namespace lra {

// Version, git revision and dirty state (baked in at build time), compiler, processor, ISA, system,
// threads, start time and `command` (argv). The caller sets torch_version, device and kernels, and
// finished_utc at the end.
Provenance make_provenance(const std::vector<std::string>& command);

// "0.1.0".
std::string lra_version();
// Version, git revision and dirty state in one line: another program may compute something else.
std::string program_revision();

}  // namespace lra
