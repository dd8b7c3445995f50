#include "training/settings/weights_file.h"

#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "data/files.h"
#include "io/atomic_file.h"
#include "io/struct_json.h"
#include "training/settings/run_folder.h"

namespace lra::training {

// The entry lra.progress of a file's metadata.
LRA_FIELDS(Health, skipped, skipped_in_a_row, roll_backs, undone, mean_loss, mean_norm, num_good)

void fields(auto& f, TrainProgress& value) {
  LRA_MEMBERS(step, tokens)
  std::optional<int64_t> computed_tokens = value.computed_tokens;
  f("computed_tokens", computed_tokens);
  value.computed_tokens = computed_tokens.value_or(-1);
  LRA_MEMBERS(last_eval_step, best_accuracy, best_step)
  f("loss_sum", value.mean.loss_sum);
  f("correct", value.mean.correct);
  f("count", value.mean.count);
  std::optional<Health> health;
  if (value.health != Health{}) health = value.health;
  f("health", health);
  value.health = health.value_or(Health{});
}

namespace {

namespace fs = std::filesystem;

using Metadata = std::map<std::string, std::string>;
constexpr const char* kHashKey = "lra.xxh3";

// Hash of everything in a file except the entry of the hash itself.
std::string hash_of_file(const std::vector<TensorView>& tensors, Metadata metadata,
                         const std::string& data_hash) {
  metadata.erase(kHashKey);
  Json entries = Json::array();
  for (const TensorView& tensor : tensors) {
    entries.push_back({tensor.name, to_string(tensor.dtype), tensor.shape});
  }
  return to_hex(hash128(json_text({metadata, entries, data_hash})));
}

Metadata metadata_of(const TrainProgress& progress, const RunIdentity& run) {
  Metadata metadata = {{"format", "pt"}, {"lra.progress", json_text(to_json_value(progress))}};
  add_identity(run, metadata);
  return metadata;
}

void refuse_file_of_others(const SafetensorsFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    if (key.starts_with("lra.")) return;
  }
  throw Error({.where = file.path(),
               .what = "is a safetensors file that lra did not write: its metadata names no run",
               .expected = "a checkpoint of lra",
               .advice = "'lra train TASK MODEL --init-from FILE' starts a run with such weights"});
}

// The run has ended in order, so that its record and its checkpoints are of the same moment.
bool has_settled(const RunRecord& run) {
  return run.status == RunStatus::kDone ||
         (run.status == RunStatus::kStopped && run.failure.empty());
}

// The step of the weights in a folder of this name; nothing if the record does not say.
std::optional<int64_t> recorded_step(const std::string& folder, const RunRecord& run) {
  if (!has_settled(run)) return {};
  if (folder == "latest") return run.steps;
  return folder == "best" && run.best_val ? std::optional(run.best_val->step) : std::nullopt;
}

}  // namespace

std::string hash_of_tensors(const std::vector<TensorView>& tensors) {
  Hasher hasher;
  for (const TensorView& tensor : tensors) hasher.append(tensor.data);
  return to_hex(hasher.digest());
}

void refuse_weights(const SafetensorsFile& file, const std::string& what,
                    const std::string& expected) {
  throw Error({.where = file.path(),
               .what = what,
               .expected = expected,
               .advice = "the file is damaged or not a checkpoint of this model"});
}

bool has_weights_hash(const SafetensorsFile& file) { return file.metadata().contains(kHashKey); }

std::string check_weights_hash(const SafetensorsFile& file) {
  refuse_file_of_others(file);
  std::string data_hash = hash_of_tensors(file.tensors());
  const auto hash = file.metadata().find(kHashKey);
  if (hash == file.metadata().end() ||
      hash->second != hash_of_file(file.tensors(), file.metadata(), data_hash)) {
    refuse_weights(file, "the contents do not match their hash", "the bytes that were written");
  }
  return data_hash;
}

std::string write_weights(const std::string& path, const std::vector<TensorView>& tensors,
                          const TrainProgress& progress, const RunIdentity& run) {
  Metadata metadata = metadata_of(progress, run);
  const std::string data_hash = hash_of_tensors(tensors);
  metadata[kHashKey] = hash_of_file(tensors, metadata, data_hash);
  write_safetensors(path, tensors, metadata);
  return data_hash;
}

TrainProgress progress_in(const SafetensorsFile& file) {
  const auto found = file.metadata().find("lra.progress");
  if (found == file.metadata().end()) {
    throw Error({.where = file.path(),
                 .what = "there is no lra.progress in its metadata",
                 .expected = "a checkpoint of lra"});
  }
  const Json json = parse_json(found->second, file.path());
  JsonFields entry(json, file.path(), "lra.progress");
  StructReader reader(entry);
  TrainProgress progress;
  fields(reader, progress);
  return progress;
}

LoadedWeights describe_weights(const SafetensorsFile& file, std::span<const RunIdentity> expected,
                               const std::string& advice) {
  LoadedWeights found{.hash = check_weights_hash(file)};
  found.run = find_identity(file.metadata(), file.path());
  if (!expected.empty()) refuse_foreign_weights(found.run, expected, file.path(), advice);
  found.progress = progress_in(file);
  // Behind a link, as "latest", too.
  std::error_code ignored;
  const std::string folder = fs::canonical(file.path(), ignored).parent_path().filename().string();
  const std::string step = std::to_string(found.progress.step);
  if (!expected.empty() && folder.starts_with(kStepPrefix) && folder != kStepPrefix + step) {
    refuse_weights(file, "holds the weights of step " + step, "those of its folder, " + folder);
  }
  return found;
}

LoadedWeights describe_weights(const std::string& path, std::span<const RunIdentity> expected) {
  return describe_weights(SafetensorsFile::open(path), expected, "");
}

bool is_exported(const std::string& run) {
  std::error_code ignored;
  return fs::is_regular_file(run + "/" + kWeightsFile, ignored) &&
         !fs::exists(RunFolder{run}.checkpoints(), ignored);
}

std::string tested_checkpoint(const RunRecord& record) {
  if (record.status != RunStatus::kDone || record.checkpoint == "last") return "last";
  return record.checkpoint == "best" ? "best" : step_name(record.test->step);
}

std::string checkpoint_file(const std::string& run, const std::string& checkpoint) {
  std::error_code ignored;
  const bool is_path = checkpoint.find_first_of("./") != std::string::npos;
  if (is_path &&
      (checkpoint.ends_with(".safetensors") || fs::is_regular_file(checkpoint, ignored))) {
    return checkpoint;
  }
  if (checkpoint.find('/') != std::string::npos && fs::is_directory(checkpoint, ignored)) {
    return checkpoint + "/" + kWeightsFile;
  }
  if (is_exported(run)) return run + "/" + kWeightsFile;
  const std::string name = checkpoint == "last" ? "latest" : checkpoint;
  return RunFolder{run}.checkpoints() + "/" + name + "/" + kWeightsFile;
}

void refuse_other_weights(const std::string& file, const LoadedWeights& found,
                          const RunRecord& run) {
  const std::string folder = fs::path(file).parent_path().filename();
  const int64_t step = found.progress.step;
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw Error({.where = file,
                 .what = what,
                 .expected = expected,
                 .advice = "restore checkpoints/" + folder +
                           " and record.json of the same run, or "
                           "name another step with --checkpoint step_N"});
  };
  const std::string weights = "holds the weights of step " + std::to_string(step);
  if (const auto recorded = recorded_step(folder, run); recorded && *recorded != step) {
    refuse(weights, "those of step " + std::to_string(*recorded) + ", as record.json says");
  }
  if (folder == "best" && found.progress.best_step != step) {
    refuse(weights,
           "those of its best validation, step " + std::to_string(found.progress.best_step));
  }
  const int64_t hashed_step = run.test ? run.test->step : run.steps;
  if (has_settled(run) && step == hashed_step && found.hash != run.weights_hash) {
    refuse(weights + " with the hash " + found.hash, run.weights_hash + ", as record.json says");
  }
}

namespace {

// The accuracy next to exported weights looks like theirs.
void refuse_untested_weights(const std::string& file, int64_t step, const RunRecord& run) {
  if (!run.test || run.test->step == step) return;
  throw Error({.where = file,
               .what = "holds the weights of step " + std::to_string(step),
               .expected = "those of step " + std::to_string(run.test->step) +
                           ", which the accuracy in record.json is of",
               .advice = "export the run without --checkpoint"});
}

}  // namespace

std::vector<std::string> check_checkpoints_beside(const RunRecord& run,
                                                  const std::string& record_path) {
  if (run.kind != "train" || fs::path(record_path).filename() != "record.json") return {};
  std::vector<std::string> findings, names = {"best", "latest"};
  if (run.test) names.push_back(step_name(run.test->step));
  const bool exported = is_exported(folder_of(record_path));
  if (exported) names = {"latest"};  // the one file that there is
  for (const std::string& name : names) {
    const std::string file = checkpoint_file(folder_of(record_path), name);
    if (!is_there(file)) continue;
    try {
      const LoadedWeights found = describe_weights(file, identities_of(run));
      refuse_other_weights(file, found, run);
      if (exported) refuse_untested_weights(file, found.progress.step, run);
    } catch (const Error& error) {
      findings.push_back(error.what());
    }
  }
  return findings;
}

}  // namespace lra::training
