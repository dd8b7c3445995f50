// Compares imported ListOps expressions with those that the task's settings give.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/listops/generator.h"

namespace lra::tasks {

// Returns a sentence for each split whose expressions were drawn with other settings: their number
// of tokens, their depth or the number of arguments of their operators differs from that of
// expressions drawn with `settings` by far more than chance (is_shifted() in split_shift.h). Reads
// at most 1,000 expressions of a split; splits of fewer than kFewestToJudge are not judged. Empty
// if nothing can be drawn with the settings.
std::vector<std::string> doubts_of_settings(const Dataset& dataset,
                                            const ListOpsSettings& settings);

}  // namespace lra::tasks
