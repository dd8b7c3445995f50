#include "training/settings/self_pretraining.h"

#include <filesystem>

#include "base/text_format.h"
#include "records/check_record.h"
#include "records/find_setting.h"
#include "records/run_identity.h"
#include "training/settings/weights_file.h"

namespace lra::training {

namespace fs = std::filesystem;

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

std::optional<Pretraining> pretraining_of(const std::string& file,
                                          const std::optional<RecordOfWeights>& found,
                                          const std::string& hash) {
  if (!found) return {};
  const RunRecord& record = found->record;
  if (is_masked_run(record.config)) {
    return Pretraining{.steps = describe_weights(file, {}).progress.step,
                       .fingerprint = record.fingerprint,
                       .config = record.config};
  }
  const bool is_beginning = record.initial_weights && record.initial_weights->hash == hash;
  return is_beginning ? record.initial_weights->pretraining : std::nullopt;
}

std::string self_pretraining(const RunConfig& run, const std::string& data_hash,
                             const std::optional<InitialWeights>& weights) {
  if (!weights || !weights->pretraining) return "";
  const Pretraining& before = *weights->pretraining;
  // The fingerprint proves that the settings and the data are those of the run.
  const std::string fingerprint =
      run_fingerprint(config_hash(before.config), data_hash, run.task_spec().version);
  const auto of_run = [&](const char* key) {
    return find_setting_as<std::string>(before.config, "run", key);
  };
  if (fingerprint != before.fingerprint || of_run("task") != run.task ||
      of_run("initial_weights") || !is_masked_run(before.config) ||
      find_setting_as<std::string>(before.config, "train", "token_order") == "shuffled") {
    return "";
  }
  return thousands(before.steps) + (before.steps == 1 ? " step" : " steps") +
         " of masked pretraining on the task's own inputs";
}

bool is_of_masked_run(const std::string& tensor) {
  return tensor.starts_with("token_head.") || tensor == "embedding.mask";
}

bool is_of_classifier(const std::string& tensor) { return tensor.starts_with("head."); }

}  // namespace lra::training
