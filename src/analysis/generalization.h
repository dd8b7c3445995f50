// Generalization gap (Tay et al. 2021, table 3): accuracy on the training split less accuracy on
// the test split, each from a separate pass without dropout.
#pragma once

#include <algorithm>
#include <cmath>

#include "records/analysis_record.h"

namespace lra::analysis {

// gap_error: the standard error of a difference of two independent binomial shares.
inline GeneralizationResult generalization_of(const Evaluation& train, const Evaluation& test) {
  const auto variance = [](const Evaluation& e) {
    return e.accuracy * (1 - e.accuracy) /
           static_cast<double>(std::max<int64_t>(1, e.num_examples));
  };
  return {.train = train,
          .test = test,
          .gap = train.accuracy - test.accuracy,
          .gap_error = std::sqrt(variance(train) + variance(test))};
}

}  // namespace lra::analysis
