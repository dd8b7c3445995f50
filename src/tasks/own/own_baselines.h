// Trivial classifiers for sequences of any kind.
#pragma once

#include "checks/baseline.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {

// The nearest of the means that the classes have on `train`, by Euclidean distance between features
// of deviation 1. Features of tokens and bytes: log(1 + count) of each id modulo 512, order
// ignored. Features of values: the mean of each channel in each of up to 64 windows of equal
// length.
checks::Baseline centroid_baseline(const Split& train, const Split& test,
                                   const CustomConfig& config);

// The class of the word of a text that comes most purely with one class on train, and the most
// frequent class if no word is known. It finds labels that were left in the text, such as
// "__label__2" and "[category: sport]". Reads at most 10,000 examples of train.
checks::Baseline word_baseline(const Split& train, const Split& test, const CustomConfig& config);

}  // namespace lra::tasks
