// The nearest mean of a class: a trivial classifier for examples of any features.
#pragma once

#include <functional>
#include <span>

#include "checks/baseline.h"
#include "data/dataset.h"

namespace lra::checks {

// The features of examples. `read` adds those of one to zeros; it is called from several threads.
struct Features {
  int64_t size = 0;
  std::function<void(const Split&, int64_t example, std::span<float>)> read;
  bool are_scaled = false;  // to deviation 1 on train; those that never vary are left out
};

// Scores on `test` the nearest of the means that the classes have on `train`, by Euclidean
// distance. The accuracy is 0 if a split is empty.
Baseline nearest_mean_baseline(const Split& train, const Split& test, int64_t num_classes,
                               const Features& features);

}  // namespace lra::checks
