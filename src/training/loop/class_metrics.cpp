#include "training/loop/class_metrics.h"

#include <algorithm>
#include <cmath>

namespace lra::training {

double macro_f1(const std::vector<std::vector<int64_t>>& confusion) {
  double sum = 0;
  int64_t num_classes = 0;
  for (size_t c = 0; c < confusion.size(); ++c) {
    int64_t labels_and_predictions = 0;
    for (size_t other = 0; other < confusion.size(); ++other) {
      labels_and_predictions += confusion[c][other] + confusion[other][c];
    }
    if (labels_and_predictions == 0) continue;
    ++num_classes;
    sum += 2 * static_cast<double>(confusion[c][c]) / static_cast<double>(labels_and_predictions);
  }
  return num_classes > 0 ? sum / static_cast<double>(num_classes) : 0;
}

std::optional<double> area_under_roc(const EvaluationResult& result, const Split& split) {
  if (result.confusion.size() != 2 || result.predictions.empty()) return std::nullopt;
  if (!std::isfinite(result.summary.loss)) return std::nullopt;  // probabilities may be NaN
  struct Example {
    double score;  // probability of class 1
    int32_t label;
  };
  std::vector<Example> examples;
  for (const Prediction& p : result.predictions) {
    examples.push_back({p.label == 1 ? p.probability : 1 - p.probability,
                        split.label(static_cast<int64_t>(examples.size()))});
  }
  std::ranges::sort(examples, {}, &Example::score);
  double zeros_below = 0, ones = 0, won = 0;
  for (auto tied = examples.begin(); tied != examples.end();) {
    double tied_zeros = 0, tied_ones = 0;
    const double score = tied->score;
    for (; tied != examples.end() && tied->score == score; ++tied) {
      (tied->label == 1 ? tied_ones : tied_zeros) += 1;
    }
    won += tied_ones * (zeros_below + tied_zeros / 2);
    zeros_below += tied_zeros;
    ones += tied_ones;
  }
  if (zeros_below == 0 || ones == 0) return std::nullopt;
  return won / (zeros_below * ones);
}

at::Tensor balanced_weights(const Split& split, int64_t num_classes) {
  std::vector<int64_t> counts(static_cast<size_t>(num_classes));
  for (int64_t i = 0; i < split.size(); ++i) ++counts.at(static_cast<size_t>(split.label(i)));
  const auto num_present =
      static_cast<double>(num_classes - std::ranges::count(counts, int64_t{0}));
  const at::Tensor weights_C = at::ones({num_classes});
  for (int64_t c = 0; c < num_classes; ++c) {
    const auto count = static_cast<double>(counts[static_cast<size_t>(c)]);
    if (count > 0) weights_C[c] = static_cast<double>(split.size()) / (num_present * count);
  }
  return weights_C;
}

}  // namespace lra::training
