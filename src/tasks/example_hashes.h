// What an example is, without its label.
#pragma once

#include <vector>

#include "base/hash.h"
#include "tasks/dataset.h"

namespace lra::tasks {

// One hash per example over the tokens of every tower and where each ends.
std::vector<Hash128> example_hashes(const Split& split, int64_t num_towers);

}  // namespace lra::tasks
