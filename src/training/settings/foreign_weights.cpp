#include "training/settings/foreign_weights.h"

#include <filesystem>
#include <set>

#include "base/text_format.h"
#include "records/check_record.h"
#include "tasks/all.h"
#include "training/settings/data_root.h"
#include "training/settings/fairness.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kOfClassifier = {"model.pooling", "model.classifier",
                                             "model.pair_features"};

// True for settings of [model] and [mixer] that evaluation depends on.
bool is_of_function(const std::string& key) {
  return (key.starts_with("model.") || key.starts_with("mixer.")) &&
         key.find("dropout") == key.npos;
}

// Adds the warnings about the weights that the other run began with.
void add_inherited(const RunRecord& record, std::vector<std::string>& warnings) {
  const std::string began = "the run began with ";
  for (const std::string& warning : record.warnings.value_or(std::vector<std::string>{})) {
    if (!warning.starts_with(began)) continue;
    warnings.push_back(began + "weights of a run that began with " + warning.substr(began.size()));
  }
}

// Weights of other data than the run's: the run's test may be among it.
void add_other_data(const std::optional<RecordOfWeights>& theirs, const RunIdentity& weights_of,
                    bool has_classifier, const RunConfig& run, const ScaledSplit& test,
                    WeightsFindings& found) {
  if (tasks::find_task(weights_of.task).name != run.task_spec().name) return;
  const auto known = theirs ? count_trained_on(theirs->folder, theirs->record, test) : std::nullopt;
  if (known && *known > 0) {
    found.data_checks.push_back(
        {.check = "copies",
         .split = "test",
         .text = thousands(*known) + " of the " + thousands(test.split.size()) +
                 " test examples are among those that the first weights of the run were trained "
                 "on"});
  }
  if (!has_classifier) return;
  if (run.task_spec().settings_of)
    found.warnings.push_back(
        "the run began with a classifier of other data: do its classes mean the same?");
  if (!known) {
    found.warnings.push_back(
        "the run began with weights of other data, which is not at hand: are no examples of this "
        "test among it?");
  }
}

}  // namespace

std::optional<RecordOfWeights> record_of_weights(const std::string& file,
                                                 const std::optional<RunIdentity>& weights_of) {
  if (!weights_of) return {};
  std::error_code missing, ignored;
  const fs::path folder = fs::canonical(file, missing).parent_path();
  if (missing) return {};
  for (const fs::path& place : {folder, folder.parent_path().parent_path()}) {
    const fs::path beside = place / "record.json";
    if (!fs::is_regular_file(beside, ignored)) continue;
    RunRecord record = read_consistent_record(beside);
    if (static_cast<const RunIdentity&>(record) != *weights_of) return {};
    return RecordOfWeights{.folder = {place}, .record = std::move(record)};
  }
  return {};
}

WeightsFindings findings_of_weights(const std::string& file,
                                    const std::optional<RunIdentity>& weights_of,
                                    bool has_classifier, const RunConfig& run,
                                    const std::string& data_hash, const ScaledSplit& test) {
  if (!weights_of) return {};
  WeightsFindings found;
  const auto theirs_at_hand = record_of_weights(file, weights_of);
  if (theirs_at_hand) add_inherited(theirs_at_hand->record, found.warnings);
  if (weights_of->model != run.model) {
    found.warnings.push_back("the run began with weights of another model, " + weights_of->model);
  } else if (theirs_at_hand) {
    const auto theirs = scored_settings(RunConfig::from_table(theirs_at_hand->record.config));
    for (const auto& [key, value] : scored_settings(run)) {
      const auto other = theirs.find(key);
      if (!is_of_function(key) || other == theirs.end() || other->second == value) continue;
      if (!has_classifier && kOfClassifier.contains(key)) continue;
      found.warnings.push_back("the run began with weights that were trained with " + key + "=" +
                               other->second + ", and has " + key + "=" + value);
    }
  }
  if (weights_of->data_hash != data_hash) {
    add_other_data(theirs_at_hand, *weights_of, has_classifier, run, test, found);
  }
  return found;
}

}  // namespace lra::training
