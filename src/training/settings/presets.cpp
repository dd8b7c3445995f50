#include "training/settings/presets.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/quoted.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/python_layer.h"
#include "tasks/all.h"
#include "training/settings/budget.h"
#include "training/settings/config_sections.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;

// [PRESET] like = "MODEL": the settings of that model's preset come first, those of its mixer
// aside.
constexpr const char* kLike = "like";

// The name of a task, without that of its data.
std::string task_name(const std::string& task) { return std::string(tasks::find_task(task).name); }

std::string task_file(const std::string& task) {
  return config_folder() + "/tasks/" + task_name(task) + ".toml";
}

std::string model_file(const std::string& model) {
  return config_folder() + "/models/" + model + ".toml";
}

// Empty for the published preset of a model, which its file has as a whole.
ConfigTable task_layers(const std::string& task, const std::string& model,
                        const std::string& preset) {
  const std::string path = task_file(task);
  const ConfigTable file = parse_toml_file(path);
  const ConfigValue* found = file.find(preset);
  if (!found || !found->as_table()) {
    const std::vector<std::string> known = preset_names(task, model);
    if (std::ranges::find(known, preset) != known.end()) return {};
    throw Error({.where = is_model_preset(preset) ? model_file(model) : path,
                 .what = "there is no preset " + in_quotes(preset) + " for " + task,
                 .advice = suggestion(preset, known)});
  }
  refuse_unknown_sections(*found->as_table());
  return *found->as_table();
}

// A section under a misspelled name would be left out without a word. A preset may belong to
// another task than the one of this run.
void refuse_unknown_model_sections(const ConfigTable& file) {
  std::vector<std::string> task_names, presets;
  for (const auto& entry : fs::directory_iterator(config_folder() + "/tasks")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string& name = task_names.emplace_back(entry.path().stem());
    for (std::string& preset : preset_names(name)) presets.push_back(std::move(preset));
  }
  presets.insert(presets.end(), std::begin(kModelPresets), std::end(kModelPresets));
  refuse_unknown_sections(file, presets);
  for (const std::string& preset : presets) {
    const ConfigTable& of_preset = section(file, preset);
    std::vector<std::string> known = task_names;
    known.push_back(kLike);
    refuse_unknown_sections(of_preset, known);
    for (const std::string& task : task_names) {
      refuse_unknown_sections(section(of_preset, task));
    }
  }
}

// The model whose settings [PRESET] of a model's file takes over; empty: none.
std::string frame_of(const ConfigTable& of_preset) {
  const ConfigValue* like = of_preset.find(kLike);
  if (!like) return "";
  const auto* name = std::get_if<std::string>(&like->value);
  if (!name) {
    throw Error({.where = like->where, .what = "'like' is not a name", .expected = "a model"});
  }
  (void)mixers::find_mixer(*name);
  return *name;
}

// [PRESET.*], then [PRESET.TASK.*] of a model's file.
void merge_preset(ConfigTable& settings, const ConfigTable& file, const std::string& preset,
                  const std::string& task) {
  const ConfigTable& of_preset = section(file, preset);
  if (const std::string other = frame_of(of_preset); !other.empty()) {
    const ConfigTable file_of_other = parse_toml_file(model_file(other));
    ConfigTable frame;
    merge_sections(frame, section(file_of_other, preset));
    merge_sections(frame, section(section(file_of_other, preset), task));
    frame.erase("mixer");
    merge(settings, frame);
  }
  merge_sections(settings, of_preset);
  merge_sections(settings, section(of_preset, task));
}

// [mixer], then the preset.
void merge_model_layers(ConfigTable& settings, const std::string& model, const std::string& task,
                        const std::string& preset) {
  if (mixers::is_python_class(model)) return;  // its class has its own defaults
  const ConfigTable file = parse_toml_file(model_file(model));
  refuse_unknown_model_sections(file);
  merge_sections(settings, file);
  if (preset == kPretrainingPreset)
    merge_preset(settings, file, kFineTuningPreset, task_name(task));
  merge_preset(settings, file, preset, task_name(task));
}

// The settings with which a layer sees no later position, if it can be so.
constexpr std::pair<const char*, bool> kCausal[] = {{"causal", true}, {"bidirectional", false}};

void make_causal(ConfigTable& mixer, const std::string& model) {
  if (mixers::is_python_class(model)) return;
  for (const FieldInfo& field : mixers::find_mixer(model).describe()) {
    for (const auto& [name, value] : kCausal) {
      if (field.name == name) mixer.set(name, {value, ""});
    }
  }
}

}  // namespace

bool is_causal(const ConfigTable& mixer) {
  return std::ranges::any_of(kCausal, [&](const auto& setting) {
    const ConfigValue* found = mixer.find(setting.first);
    const bool* value = found ? std::get_if<bool>(&found->value) : nullptr;
    return value && *value == setting.second;
  });
}

std::string config_folder() {
  std::error_code ignored;
  if (const char* named = std::getenv("LRA_CONFIGS")) {
    if (fs::is_directory(fs::path(named) / "tasks", ignored)) return named;
    throw Error({.where = "LRA_CONFIGS",
                 .what = "names " + in_quotes(named) + ", which holds no folder 'tasks' of presets",
                 .expected = "the checkout's configs folder, or one like it",
                 .advice = "unset the variable, or correct it"});
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& base :
       {program, program.parent_path(), program.parent_path() / "share/lra", fs::path(".")}) {
    if (fs::is_directory(base / "configs/tasks", ignored)) return (base / "configs").string();
  }
  throw Error({.where = "configs",
               .what = "the folder of presets was not found next to the program",
               .advice = "set LRA_CONFIGS to the checkout's configs folder"});
}

std::vector<std::string> frames_of(const std::string& model) {
  std::vector<std::string> frames;
  for (const auto& [key, value] : parse_toml_file(model_file(model))) {
    const std::string frame = value.as_table() ? frame_of(*value.as_table()) : "";
    if (!frame.empty()) frames.push_back(frame);
  }
  return frames;
}

bool is_model_preset(const std::string& preset) {
  return std::ranges::find(kModelPresets, preset) != std::end(kModelPresets);
}

std::vector<std::string> preset_names(const std::string& task) {
  std::vector<std::string> names;
  for (const auto& [key, value] : parse_toml_file(task_file(task))) {
    if (value.as_table()) names.push_back(key);
  }
  return names;
}

std::vector<std::string> preset_names(const std::string& task, const std::string& model) {
  std::vector<std::string> names = preset_names(task);
  if (mixers::is_python_class(model)) return names;
  const ConfigTable file = parse_toml_file(model_file(model));
  for (const std::string preset : kModelPresets) {
    const char* of = preset == kPretrainingPreset ? kFineTuningPreset : preset.c_str();
    if (section(file, of).find(task_name(task))) names.push_back(preset);
  }
  return names;
}

RunConfig resolve_run(const std::string& task, const std::string& model, const std::string& preset,
                      uint64_t seed, const ConfigTable& overrides,
                      const std::vector<std::string>& sets) {
  (void)tasks::find_task(task);
  (void)mixers::find_mixer(model);
  ConfigTable settings;
  const ConfigTable of_task = task_layers(task, model, preset);
  merge_sections(settings, of_task);
  merge_model_layers(settings, model, task, preset);
  if (tasks::find_task(task).is_diagnostic) {
    merge_sections(settings, of_task);
    make_causal(settings.table("mixer"), model);
  }
  merge(settings, overrides);
  const int64_t steps_before = read_config<TrainConfig>(section(settings, "train"), "train").steps;
  for (const std::string& set : sets) apply_override(settings, set);
  refuse_unknown_sections(settings);
  RunConfig run = RunConfig::from_sections(task, model, preset, seed, settings);
  for (const std::string& set : sets) {
    if (!run.is_whole_model() || !(set.starts_with("model.") || set == "train.recompute=true"))
      continue;
    throw Error(
        {.where = set.substr(0, set.find('=')),
         .what = "is of the encoder; a whole model has arguments of its class, mixer.NAME"});
  }
  refuse_two_lengths(steps_before, run.train);
  return run;
}

ConfigTable data_settings_of(const RunConfig& run) {
  ConfigTable settings;
  if (run.task_spec().settings_of) settings.set("task", {run.task_settings, ""});
  return settings;
}

RunConfig preset_of(const RunConfig& run) {
  ConfigTable own = data_settings_of(run);
  if (mixers::is_python_class(run.model)) own.set("mixer", {run.mixer_settings, ""});
  return resolve_run(run.task, run.model, run.preset, run.seed, own, {});
}

std::optional<int64_t> preset_steps(const RunConfig& run) {
  const std::vector<std::string> names = preset_names(run.task, run.model);
  if (std::find(names.begin(), names.end(), run.preset) == names.end()) return std::nullopt;
  return preset_of(run).train.steps;
}

}  // namespace lra::training
