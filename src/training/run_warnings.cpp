#include "training/run_warnings.h"

#include "tasks/data_doubts.h"
#include "training/fairness.h"

namespace lra::training {

std::vector<std::string> size_warnings(const RunConfig& config, const RunRecord& record) {
  const std::string doubt =
      size_doubt(config.task_settings, record.data_source, record.data_examples.value());
  if (doubt.empty()) return {};
  return {kDataDoubt + doubt};
}

std::string size_doubt(const ConfigTable& task_settings, const std::string& data_source,
                       const SplitSizes& data) {
  const std::string size = size_unlike_task(task_settings, data);
  if (size.empty()) return "";
  const char* question = data_source == "imported" ? ": were all files there?" : "";
  return data_source + " " + size + question;
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
