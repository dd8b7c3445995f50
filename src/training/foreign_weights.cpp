#include "training/foreign_weights.h"

#include <filesystem>
#include <set>

#include "records/check_record.h"
#include "training/fairness.h"

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

// Adds what was in doubt about the weights that the other run began with.
void add_inherited(const RunRecord& record, std::vector<std::string>& doubts) {
  const std::string began = "the run began with ";
  for (const std::string& warning : record.warnings.value_or(std::vector<std::string>{})) {
    if (!warning.starts_with(began)) continue;
    doubts.push_back(began + "weights of a run that began with " + warning.substr(began.size()));
  }
}

}  // namespace

std::optional<RunRecord> record_of_weights(const std::string& file,
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
    return record;
  }
  return {};
}

std::vector<std::string> doubts_of_weights(const std::string& file,
                                           const std::optional<RunIdentity>& weights_of,
                                           bool has_classifier, const RunConfig& run,
                                           const std::string& data_hash) {
  if (!weights_of) return {};
  std::vector<std::string> doubts;
  const auto record = record_of_weights(file, weights_of);
  if (record) add_inherited(*record, doubts);
  if (weights_of->model != run.model) {
    doubts.push_back("the run began with weights of another model, " + weights_of->model);
  } else if (record) {
    const auto theirs = scored_settings(RunConfig::from_table(record->config));
    for (const auto& [key, value] : scored_settings(run)) {
      const auto found = theirs.find(key);
      if (!is_of_function(key) || found == theirs.end() || found->second == value) continue;
      if (!has_classifier && kOfClassifier.contains(key)) continue;
      doubts.push_back("the run began with weights that were trained with " + key + "=" +
                       found->second + ", and has " + key + "=" + value);
    }
  }
  const bool is_other_data = run.task_spec().settings_of && weights_of->data_hash != data_hash;
  if (has_classifier && is_other_data) {
    doubts.push_back(
        "the run began with a classifier of other data: do its classes stand for the same, and are "
        "no examples of this test among those that it was trained on?");
  }
  return doubts;
}

}  // namespace lra::training
