// Finds examples that share passages with one training example: windows cut from one recording,
// copies with changes.
//
// A passage is 16 positions, exactly equal, or 8 words of a text whatever their case; fewer than
// six different tokens make it longer, so that chance repeats none. A run of one value is none.
// Series that were standardized one by one are not seen: they are no longer equal anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checks/statistics.h"
#include "data/dataset.h"

namespace lra::checks {

// For each of `others`, the number of examples a quarter of whose passages are in one example of
// the split `train`. Passages of over 100 training examples, or a quarter of all, are taken for
// prompts and the like. Of pairs, both sequences have to share theirs with those of one example.
std::vector<int64_t> count_overlaps(const Dataset& dataset, const std::string& train,
                                    const std::vector<std::string>& others,
                                    const StatsSettings& settings);

}  // namespace lra::checks
