#include "analysis/convergence.h"

#include <cmath>

#include "base/error.h"
#include "base/parsed_number.h"
#include "base/quoted.h"

namespace lra::analysis {
namespace {

double parse_threshold(std::string text) {
  const std::string whole = text;
  double unit = 1;
  if (text.ends_with('%')) {
    text.pop_back();
    unit = 100;
  }
  const auto value = parsed_number<double>(text);
  if (value && *value > 0 && *value <= unit) return *value / unit;
  throw Error({.where = "--thresholds",
               .what = in_quotes(whole, 50) + " is not an accuracy",
               .expected = "numbers above 0 and up to 1, or percentages, separated by commas",
               .advice = "for example 30%,35%"});
}

}  // namespace

std::vector<double> parse_thresholds(const std::string& text) {
  std::vector<double> thresholds;
  size_t begin = 0;
  while (true) {
    const size_t comma = text.find(',', begin);
    thresholds.push_back(parse_threshold(text.substr(begin, comma - begin)));
    if (comma == std::string::npos) return thresholds;
    begin = comma + 1;
  }
}

ConvergenceResult measure_convergence(const RunRecord& run, int64_t eval_every,
                                      const std::vector<double>& thresholds) {
  ConvergenceResult result;
  result.eval_every = eval_every;
  const double step_seconds =
      run.steps > 0 ? run.train_seconds / static_cast<double>(run.steps) : 0;
  for (const double accuracy : thresholds) {
    Threshold threshold{.accuracy = accuracy, .step = {}, .seconds = {}};
    for (const Evaluation& e : run.val_curve) {
      if (e.accuracy < accuracy) continue;
      threshold.step = e.step;
      if (step_seconds > 0) threshold.seconds = static_cast<double>(e.step) * step_seconds;
      break;
    }
    result.thresholds.push_back(threshold);
  }
  for (const Evaluation& e : run.val_curve) {
    if (!result.best || e.accuracy > result.best->accuracy) result.best = e;
    result.last_step = e.step;
  }
  return result;
}

}  // namespace lra::analysis
