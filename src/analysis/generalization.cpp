#include "analysis/generalization.h"

#include <algorithm>
#include <cmath>

namespace lra::analysis {
namespace {

double variance(const Evaluation& e) {
  return e.accuracy * (1 - e.accuracy) / static_cast<double>(std::max<int64_t>(1, e.num_examples));
}

}  // namespace

GeneralizationResult generalization_of(const Evaluation& train, const Evaluation& test) {
  return {.train = train,
          .test = test,
          .gap = train.accuracy - test.accuracy,
          .gap_error = std::sqrt(variance(train) + variance(test))};
}

}  // namespace lra::analysis
