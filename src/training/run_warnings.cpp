#include "training/run_warnings.h"

#include "tasks/data_doubts.h"
#include "training/fairness.h"

namespace lra::training {

std::vector<std::string> size_warnings(const RunConfig& config, const RunRecord& record) {
  const std::string size = size_unlike_task(config, record.data_examples.value());
  if (size.empty()) return {};
  const char* question = record.data_source == "imported" ? ": were all files there?" : "";
  return {kDataDoubt + record.data_source + " " + size + question};
}

std::vector<std::string> baseline_warnings(const RunRecord& record, int64_t num_classes) {
  std::vector<tasks::Baseline> baselines;
  for (const auto& [name, accuracy] : record.baselines) baselines.push_back({name, accuracy});
  std::vector<std::string> warnings;
  for (const std::string& doubt :
       tasks::doubts_of_baselines(baselines, num_classes, record.test_split_examples)) {
    warnings.push_back(kDataDoubt + doubt);
  }
  return warnings;
}

}  // namespace lra::training
