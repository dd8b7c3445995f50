// Finds examples that share passages with one training example: windows cut from one recording,
// copies with changes.
//
// A passage is 16 units in a row, exactly equal, or 8 of a text. A unit is a position, or a word
// whatever its case; equal neighbors are one unit with their number, so that what stays the same
// for a while tells little. Sequences with fewer than eight passages are not judged, and series
// that were standardized one by one are not seen: they are no longer equal anywhere.
#pragma once

#include "checks/statistics.h"
#include "data/dataset.h"

namespace lra::checks {

// The number of test examples that are no copies and share with one training example a quarter of
// the passages that at most three training examples have, or two thirds of those that at most a
// hundred (or a quarter of all) have: the others are prompts, licenses and the like. Both sequences
// of a pair have to share theirs with those of one example. Needs the statistics after relate().
int64_t count_overlaps(const Dataset& dataset, const SplitStats& train, const SplitStats& test,
                       const StatsSettings& settings);

}  // namespace lra::checks
