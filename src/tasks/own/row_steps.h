// Finds tables of which a row is one step of a recording.
#pragma once

#include <vector>

#include "tasks/own/examples.h"

namespace lra::tasks {

// True if rows in the order of their files have the same label in long runs, of which there are
// more than classes, and are far nearer to the next one than to others of their class, while the
// columns are unrelated. Rows that are smooth along their columns are sequences, as pieces of a
// recording that overlap are. `examples` have one sequence of one channel each.
bool may_be_steps(const std::vector<OwnExample>& examples);

}  // namespace lra::tasks
