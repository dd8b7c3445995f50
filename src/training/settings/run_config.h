// All settings of one run, resolved from layers: struct defaults < task TOML < model TOML < suite <
// --set.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "mixers/layer_spec.h"
#include "models/model_config.h"
#include "tasks/task.h"
#include "training/loop/masking.h"
#include "training/settings/group_config.h"
#include "training/settings/train_config.h"

namespace lra::training {

struct RunConfig {
  std::string task, model, preset;
  uint64_t seed = 0;
  ConfigTable task_settings, mixer_settings;  // every field written out
  models::ModelConfig model_config;
  TrainConfig train;
  GroupConfigs groups;  // of the model's sequence layer
  // Hash of the trained weights that the run begins with; empty: they are drawn from the seed.
  std::string initial_weights = {};
  // Number of steps that were trained before with other settings, and the hash of these: "500
  // 0123...". A run that was trained on differs by it from a run with its settings from the
  // beginning.
  std::string trained_on = {};

  const tasks::TaskSpec& task_spec() const;
  const mixers::LayerSpec& mixer_spec() const;
  std::string task_title() const;   // for people: "Long ListOps", or with the name of its data
  std::string model_title() const;  // for people: "Linformer", or the name of a Python class
  std::unique_ptr<tasks::Task> make_task() const;
  bool is_whole_model() const;
  // How positions are hidden in the inputs; nothing for a run that learns labels.
  std::optional<Masking> masking() const;

  // A split of the task as this run reads it (train.token_order).
  Split split_of(const tasks::Task& task, const Dataset& dataset, const std::string& name) const;

  // [run] task, model, preset, seed and, unless it is empty, initial_weights and trained_on;
  // [task]; [model]; [mixer]; [train]; and [groups.NAME] for each group of parameters: the content
  // of a run's config.toml.
  ConfigTable to_table() const;
  static RunConfig from_table(const ConfigTable& table);
  // From [task], [model], [mixer], [train] and [groups]; what they lack has the defaults of the
  // program. Throws lra::Error for unknown keys, and for values and combinations that do not work.
  static RunConfig from_sections(const std::string& task, const std::string& model,
                                 const std::string& preset, uint64_t seed,
                                 const ConfigTable& settings);
};

// True for a setting that was added after the first published runs, "train.label_smoothing".
bool is_later_setting(std::string_view name);

// Throws lra::Error: the model is a whole one of the user's, and the command works on an encoder.
[[noreturn]] void refuse_whole_model(const std::string& model);

// Throws lra::Error for a run that predicts masked inputs: `what`, "an analysis", needs labels.
void refuse_masked(const RunConfig& run, const std::string& what);

}  // namespace lra::training
