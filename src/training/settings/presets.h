// The presets in the TOML files of configs/, and the settings of runs that are resolved from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/settings/run_config.h"

namespace lra::training {

// The folder of the TOML files: $LRA_CONFIGS, else configs/ next to or above the program, else in
// the current folder.
std::string config_folder();

// [task] of `run` where its data decides it, else nothing: overrides for resolve_run().
ConfigTable data_settings_of(const RunConfig& run);

// True for settings of a layer, all written out, with which it sees no later position.
bool is_causal(const ConfigTable& mixer);

// The preset that `run` began from, without its changes. A Python class keeps its arguments:
// without them it may not be made.
RunConfig preset_of(const RunConfig& run);

// Steps of an unchanged run of this task, model and preset; nothing for a preset that the task's
// file no longer has.
std::optional<int64_t> preset_steps(const RunConfig& run);

// Names of the presets that the task's TOML file has ("paper", "release", "small").
std::vector<std::string> preset_names(const std::string& task);

// Presets that only models have, each in its own file and for some tasks, over the defaults of the
// program instead of a preset of the task. published: the recipe of the model's authors.
// fine_tuning: the recipe of Amos et al. for runs that begin with self-pretrained weights.
// pretraining: the same for the masked runs before; its sections change those of fine_tuning.
inline constexpr const char* kFineTuningPreset = "fine_tuning";
inline constexpr const char* kPretrainingPreset = "pretraining";
inline constexpr const char* kModelPresets[] = {"published", kFineTuningPreset, kPretrainingPreset};
bool is_model_preset(const std::string& preset);

// Models whose settings presets of `model` take over.
std::vector<std::string> frames_of(const std::string& model);

// The presets of the task, and those that the model has for this task.
std::vector<std::string> preset_names(const std::string& task, const std::string& model);

// `overrides` holds any of [task], [model], [mixer], [train], [groups]; `sets` are "--set"
// assignments such as "train.steps=100". Throws lra::Error for unknown names, keys and values.
RunConfig resolve_run(const std::string& task, const std::string& model, const std::string& preset,
                      uint64_t seed, const ConfigTable& overrides,
                      const std::vector<std::string>& sets);

}  // namespace lra::training
