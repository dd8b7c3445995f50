// The nearest mean of a class: a trivial classifier for sequences of any kind.
#pragma once

#include "tasks/own/custom_config.h"
#include "tasks/task.h"

namespace lra::tasks {

// Scores on `test` the nearest of the means that the classes have on `train`, by Euclidean distance
// between features of deviation 1. Features of tokens and bytes: log(1 + count) of each id modulo
// 512, order ignored. Features of values: the mean of each channel in each of up to 64 windows of
// equal length. 0 when a split is empty.
checks::Baseline centroid_baseline(const Split& train, const Split& test,
                                   const CustomConfig& config);

}  // namespace lra::tasks
