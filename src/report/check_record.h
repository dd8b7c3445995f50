// Whether a record that somebody hands in can be true.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lra::report {

// One line for each thing that does not fit: hashes that are not those of the settings, settings
// that name another run, accuracies that are no share of their examples, a best validation that is
// not the best, more steps than were planned. Empty for a record that agrees with itself. What
// needs a model (its division and size) is judged by the caller.
std::vector<std::string> check_record(const RunRecord& record);

}  // namespace lra::report
