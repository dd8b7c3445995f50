#include "training/foreign_weights.h"

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "records/check_record.h"
#include "records/run_identity.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kOfClassifier = {"model.pooling", "model.classifier",
                                             "model.pair_features"};

// "model.heads" -> "2", without what only training does.
std::map<std::string, std::string> settings_of_model(const ConfigTable& config) {
  std::map<std::string, std::string> settings;
  for (const char* section : {"model", "mixer"}) {
    const ConfigValue* const table = config.find(section);
    if (!table || !table->as_table()) continue;
    std::istringstream lines(canonical_text(*table->as_table()));
    for (std::string line; std::getline(lines, line);) {
      const size_t equals = line.find('=');
      const std::string key = line.substr(0, equals);
      if (key.find("dropout") != key.npos) continue;
      settings[std::string(section) + "." + key] = line.substr(equals + 1);
    }
  }
  return settings;
}

}  // namespace

std::optional<RunRecord> record_of_weights(const std::string& file,
                                           const std::optional<RunIdentity>& weights_of) {
  if (!weights_of) return {};
  std::error_code ignored;
  const fs::path folder = fs::canonical(file, ignored).parent_path();
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
  if (weights_of->model != run.model) {
    doubts.push_back("the run began with weights of another model, " + weights_of->model);
  } else if (const auto record = record_of_weights(file, weights_of)) {
    const auto theirs = settings_of_model(record->config), ours = settings_of_model(run.to_table());
    for (const auto& [key, value] : ours) {
      const auto found = theirs.find(key);
      if (found == theirs.end() || found->second == value) continue;
      if (!has_classifier && kOfClassifier.contains(key)) continue;
      doubts.push_back("the run began with weights that were trained with " + key + "=" +
                       found->second + ", and has " + key + "=" + value);
    }
  }
  const bool is_other_data = run.task_spec().settings_of && weights_of->data_hash != data_hash;
  if (has_classifier && is_other_data) {
    doubts.push_back(
        "the run began with a classifier of other data: do its classes stand for the same?");
  }
  return doubts;
}

}  // namespace lra::training
