// Which finished runs give less than a benchmark figure: too few steps, part of the test set, or
// another setting than a published one.
#pragma once

#include <string>

#include "records/run_record.h"

namespace lra::report {

// "100 of 5,000 steps, 2,000 of 25,000 test examples": what a run with a test figure lacks of a
// full one; empty for a full one. The full number of steps is the preset's own, whatever the run
// itself had planned. A record that does not name the preset's steps or the size of the test set
// was written by an earlier version: its steps are not judged, and a test that used up a limit
// (train.test_examples) counts as a part.
std::string shortfall_of(const RunRecord& run);

// Whether the paper's figures may stand beside the run. Of a record that does not say so, written
// by an earlier version, the division decides.
bool has_published_setting(const RunRecord& run);

}  // namespace lra::report
