#include "training/run_warnings.h"

#include "base/text_format.h"
#include "tasks/split_checks.h"
#include "training/fairness.h"

namespace lra::training {

std::vector<std::string> size_warnings(const RunConfig& config, const RunRecord& record) {
  const std::string size = size_unlike_task(config, record.data_examples.value());
  if (size.empty() || record.data_source != "imported") return {};
  return {"imported " + size + ": were all files there?"};
}

std::vector<std::string> baseline_warnings(const RunRecord& record) {
  constexpr double kTooEasy = 0.9;
  std::vector<std::string> warnings;
  if (record.test_split_examples < tasks::kFewestToJudge) return warnings;
  for (const auto& [name, accuracy] : record.baselines) {
    if (accuracy < kTooEasy) continue;
    warnings.push_back("the baseline '" + name + "' alone is right on " + percent(accuracy) +
                       " of the test: look for what gives the labels away");
  }
  return warnings;
}

}  // namespace lra::training
