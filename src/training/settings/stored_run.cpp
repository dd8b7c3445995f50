#include "training/settings/stored_run.h"

#include <algorithm>
#include <filesystem>

#include "base/config.h"
#include "base/quoted.h"
#include "io/toml.h"
#include "records/check_record.h"
#include "records/run_identity.h"
#include "training/settings/budget.h"
#include "training/settings/config_sections.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;

// RUN/checkpoints or RUN/checkpoints/step_N in the place of RUN.
void refuse_checkpoint_folder(const std::string& path) {
  const fs::path folder = fs::path(path).lexically_normal();
  const fs::path whole = folder.has_filename() ? folder : folder.parent_path();
  const bool is_step = whole.parent_path().filename() == "checkpoints";
  if (!is_step && whole.filename() != "checkpoints") return;
  const fs::path run = is_step ? whole.parent_path().parent_path() : whole.parent_path();
  throw Error(
      {.where = path,
       .what = "is a folder of checkpoints, not of a run",
       .expected = "the run's folder, " + in_quotes(run.empty() ? "." : run.string()),
       .advice = is_step ? "its weights are chosen with --checkpoint " + whole.filename().string()
                         : "name the folder above it"});
}

// Settings that a run may change when it continues: its length, its schedule, its evaluation, its
// logs and checkpoints. All others have determined its steps so far.
constexpr std::string_view kMayChange[] = {
    "steps",         "epochs",          "examples",         "max_seconds",     "patience",
    "learning_rate", "schedule",        "warmup_steps",     "cycle_steps",     "weight_decay",
    "clip_norm",     "eval_every",      "eval_batch_size",  "eval_examples",   "test_examples",
    "log_every",     "test_checkpoint", "checkpoint_every", "keep_checkpoints"};

}  // namespace

StoredRun read_run(const RunFolder& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder.record(), ignored)) {
    refuse_checkpoint_folder(folder.path);
    const bool is_file = std::filesystem::is_regular_file(folder.path, ignored);
    throw Error(
        {.where = folder.path,
         .what = is_file ? "is a file, not the folder of a run" : "is not the folder of a run",
         .expected = "a folder with config.toml and record.json",
         .advice = is_file ? "name the folder that holds the file"
                           : "start a run with 'lra train TASK MODEL --out FOLDER'"});
  }
  // The file unchanged: settings that this version has and the run's did not have are not a change.
  const ConfigTable settings = parse_toml_file(folder.config());
  StoredRun run{.config = RunConfig::from_table(settings),
                .record = read_consistent_record(folder.record())};
  const std::string hash = config_hash(settings);
  if (hash == run.record.config_hash) return run;
  // Settings that change are written into the record first: a run that was killed in between still
  // has the file of its earlier part.
  for (const EarlierPart& part : items_of(run.record.earlier_parts)) {
    if (part.config_hash != hash) continue;
    run.config = RunConfig::from_table(run.record.config);
    return run;
  }
  throw Error({.where = folder.config(),
               .what = "differs from the settings that the run started with",
               .expected = "the settings in record.json",
               .advice = "restore config.toml and record.json of the same run"});
}

ChangedRun with_changes(const StoredRun& run, const std::vector<std::string>& sets) {
  ConfigTable settings = run.config.to_table();
  for (const std::string& set : sets) {
    ConfigTable given;
    apply_override(given, set);
    refuse_unknown_sections(given);
    const auto refuse = [](const std::string& where, const std::string& expected) {
      throw Error({.where = where,
                   .what = "cannot change in a run that continues",
                   .expected = expected,
                   .advice = "start a new run, with its weights if you like (--init-from)"});
    };
    if (section(given, "train").empty()) refuse("--set " + set, "a setting of [train]");
    for (const auto& [key, value] : section(given, "train")) {
      const bool is_known = write_config(run.config.train).find(key);  // else refused below
      if (is_known && std::ranges::find(kMayChange, key) == std::end(kMayChange))
        refuse(value.where, "a setting of its length, schedule, validations or checkpoints");
    }
    merge(settings, given);
  }
  ChangedRun changed{.config = RunConfig::from_table(settings), .change = {}};
  refuse_two_lengths(run.config.train.steps, changed.config.train);
  const auto before = setting_texts(write_config(run.config.train));
  for (const auto& [key, value] : setting_texts(write_config(changed.config.train))) {
    if (value == before.at(key)) continue;
    changed.change += (changed.change.empty() ? "train." : ", train.") + key + "=" + value +
                      " instead of " + before.at(key);
  }
  if (!changed.change.empty()) {
    changed.config.trained_on = std::to_string(run.record.steps) + " " + run.record.config_hash;
  }
  return changed;
}

}  // namespace lra::training
