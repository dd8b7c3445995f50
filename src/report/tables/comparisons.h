// Paired tests: is a model really better than another one?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/tables/tables.h"

namespace lra::report {

// Two models whose figures are ranked together (are_ranked()) on one task. Differences are the
// first minus the second, in points.
struct PairedTest {
  const Leaderboard* board = nullptr;
  size_t column = 0;
  const Row* first = nullptr;
  const Row* second = nullptr;
  int num_seeds = 0;  // that both were run with
  // Mean over these seeds, of the tested runs with p_over_examples alone; without any seed, of the
  // two means.
  double difference = 0;
  // Half-width of the 95 % interval of the mean difference over the seeds, and the p-value of the
  // paired t-test: from three seeds on whose differences are not all equal.
  std::optional<double> interval = {}, p_over_seeds = {};
  // Exact McNemar test on the test examples of the runs of the least common seed, if both runs have
  // kept which examples they predicted right (AnalysisRecord::breakdown).
  std::optional<double> p_over_examples = {};
  int64_t only_first = 0, only_second = 0;  // examples that only one of them predicted right
  std::optional<double> p_adjusted = {};    // Holm, over all comparisons that were tested

  // Over seeds where there are enough of them, else over examples.
  std::optional<double> p() const { return p_over_seeds ? p_over_seeds : p_over_examples; }
  // "better" or "worse", with "(these runs)" if only examples were tested, "no difference shown"
  // (p_adjusted of 0.05 and above) or "not tested".
  std::string verdict() const;
};

// The model that ReportInput::compare names, or without it the best of each task and setting, with
// every other one that is ranked with it; the closest first. Throws lra::Error if no row is of the
// named model.
std::vector<PairedTest> compare_models(const ReportInput& input);

}  // namespace lra::report
