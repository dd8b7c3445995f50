#include "tasks/split_shift.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text_format.h"
#include "tasks/drawn_examples.h"

namespace lra::tasks {
namespace {

constexpr int64_t kFewestCompared = 1000, kMostCompared = 10000;

constexpr std::array<const char*, 3> kShiftTraits = {"number of tokens", "mean of the tokens",
                                                     "deviation of the tokens"};
using Traits = std::array<Spread, kShiftTraits.size()>;

Traits traits_of(const Split& split, int64_t num_towers) {
  std::array<std::vector<double>, kShiftTraits.size()> values;
  for (const int64_t i : drawn_examples(split.size(), kMostCompared)) {
    double count = 0, sum = 0, squares = 0;
    for (int64_t tower = 0; tower < num_towers; ++tower) {
      for (const double token : split.stored_bytes(i, tower)) {
        ++count;
        sum += token;
        squares += token * token;
      }
    }
    values[0].push_back(count);
    if (count == 0) continue;
    const double mean = sum / count;
    values[1].push_back(mean);
    values[2].push_back(std::sqrt(std::max(0.0, squares / count - mean * mean)));
  }
  Traits traits;
  for (size_t t = 0; t < traits.size(); ++t) traits[t] = Spread::of(values[t]);
  return traits;
}

}  // namespace

Spread Spread::of(const std::vector<double>& values) {
  Spread spread{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) spread.mean += value / count;
  for (const double value : values) squares += std::pow(value - spread.mean, 2);
  spread.deviation = std::sqrt(squares / count);
  return spread;
}

bool is_shifted(const Spread& a, const Spread& b) {
  constexpr double kFewestDeviations = 0.25, kFewestErrors = 6, kRounding = 1e-9;
  const double apart = std::abs(a.mean - b.mean);
  const double deviation = std::max({a.deviation, b.deviation, kRounding * std::abs(a.mean)});
  const double error =
      deviation * std::sqrt(1 / static_cast<double>(a.count) + 1 / static_cast<double>(b.count));
  return apart > kFewestErrors * error && apart > kFewestDeviations * deviation;
}

std::vector<std::string> doubts_of_shift(const Dataset& dataset) {
  std::vector<std::string> doubts;
  const int64_t num_towers = dataset.manifest().num_towers;
  const auto is_judged = [&](const char* name) {
    return dataset.has(name) && dataset.split(name).size() >= kFewestCompared;
  };
  if (!is_judged("train")) return doubts;
  const Traits train = traits_of(dataset.split("train"), num_towers);
  for (const char* name : {"val", "test"}) {
    if (!is_judged(name)) continue;
    const Traits other = traits_of(dataset.split(name), num_towers);
    for (size_t t = 0; t < kShiftTraits.size(); ++t) {
      if (!is_shifted(train[t], other[t])) continue;
      doubts.push_back(
          std::string("examples of ") + name + " are unlike those of train: " + kShiftTraits[t] +
          " " + fixed(other[t].mean, 1) + " on average instead of " + fixed(train[t].mean, 1));
      break;
    }
  }
  return doubts;
}

}  // namespace lra::tasks
