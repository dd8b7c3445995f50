#include "tasks/data_checks.h"

#include <iterator>

#include "io/atomic_file.h"

namespace lra::tasks {
namespace {

StoredBaselines measured_baselines(const Task& task, const Dataset& dataset) {
  StoredBaselines stored{.length = task.shape().length,
                         .num_train = task.split(dataset, "train").size(),
                         .num_test = task.split(dataset, "test").size()};
  for (const checks::Baseline& baseline : task.baselines(dataset)) {
    stored.accuracies.emplace_back(baseline.name, baseline.accuracy);
  }
  return stored;
}

std::vector<checks::Baseline> named(const StoredBaselines& stored) {
  std::vector<checks::Baseline> baselines;
  for (const auto& [name, accuracy] : stored.accuracies) baselines.push_back({name, accuracy});
  return baselines;
}

// All that the checks of imported examples compare them with.
checks::DataFacts all_facts(const Task& task, const Dataset& dataset,
                            const StoredBaselines& baselines) {
  checks::DataFacts facts = task.data_facts(dataset);
  facts.other_benchmark = task.other_benchmark(dataset);
  facts.baselines = named(baselines);
  return facts;
}

}  // namespace

std::vector<checks::Baseline> baselines_of(const Task& task, const Dataset& dataset) {
  const auto& stored = dataset.manifest().baselines;
  if (!stored || stored->length != task.shape().length ||
      stored->num_train != task.split(dataset, "train").size() ||
      stored->num_test != task.split(dataset, "test").size()) {
    return task.baselines(dataset);
  }
  return named(*stored);
}

std::vector<CheckFinding> checks_of(const Task& task, const Dataset& dataset) {
  if (dataset.manifest().source != "imported") return {};
  const auto& stored = dataset.manifest().data_checks;
  if (!stored) {
    return checks::run(dataset, all_facts(task, dataset, measured_baselines(task, dataset)));
  }
  std::vector<CheckFinding> findings = *stored;
  std::ranges::move(checks::run_on_settings(dataset, task.data_facts(dataset)),
                    std::back_inserter(findings));
  return findings;
}

void store_checks(const Task& task, const Dataset& dataset, std::vector<checks::SharedGroup> groups,
                  const std::vector<std::string>& accepted) {
  Manifest manifest = dataset.manifest();
  manifest.baselines = measured_baselines(task, dataset);
  checks::DataFacts facts = all_facts(task, dataset, *manifest.baselines);
  facts.groups = std::move(groups);
  manifest.data_checks = checks::run(dataset, std::move(facts));
  checks::accept(accepted, *manifest.data_checks);
  write_file_atomically(dataset.folder() + "/" + kManifestFile, manifest_text(manifest));
}

}  // namespace lra::tasks
