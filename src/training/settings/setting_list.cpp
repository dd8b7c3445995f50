#include "training/settings/setting_list.h"

#include <algorithm>

#include "base/other_names.h"
#include "base/quoted.h"
#include "mixers/all.h"
#include "models/model_config.h"
#include "tasks/all.h"
#include "training/settings/group_config.h"
#include "training/settings/train_config.h"

namespace lra::training {
namespace {

// Every setting of every task and model; one that is the same for several is there once.
std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  const auto add = [&](const std::string& section, std::string_view owner,
                       const std::vector<FieldInfo>& fields) {
    for (const FieldInfo& field : fields) {
      const std::string name = section + "." + field.name;
      const auto same = std::ranges::find_if(settings, [&](const Setting& known) {
        const FieldInfo& f = known.field;
        return known.name == name && f.type == field.type && f.range == field.range &&
               f.default_value == field.default_value && f.help == field.help;
      });
      if (same == settings.end()) {
        settings.push_back({name, std::string(owner), field});
      } else {
        same->owners += ", " + std::string(owner);
      }
    }
  };
  add("train", "", describe_config<TrainConfig>());
  add("model", "", describe_config<models::ModelConfig>());
  for (const tasks::TaskSpec* task : tasks::all_tasks()) add("task", task->name, task->describe());
  for (const mixers::LayerSpec* mixer : mixers::kAllMixers) {
    add("mixer", mixer->name, mixer->describe());
    for (const mixers::GroupSpec& group : mixer->groups) {
      add("groups." + std::string(group.name), mixer->name, describe_config(group_defaults(group)));
    }
  }
  return settings;
}

std::string last_word(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::vector<std::string> distinct_names(const std::vector<Setting>& settings) {
  std::vector<std::string> names;
  for (const Setting& setting : settings) {
    if (std::ranges::find(names, setting.name) == names.end()) names.push_back(setting.name);
  }
  return names;
}

}  // namespace

std::vector<Setting> find_settings(const std::string& given) {
  std::vector<Setting> found = all_settings();
  const bool is_known = std::ranges::any_of(
      found, [&](const Setting& setting) { return last_word(setting.name) == given; });
  const std::string name = is_known ? given : own_name(given);
  std::erase_if(found, [&](const Setting& setting) {
    return setting.name != name && !is_same_name(last_word(setting.name), name) &&
           !setting.name.starts_with(name + ".");
  });
  return found;
}

std::string setting_suggestion(const std::string& name) {
  const bool has_section = name.find('.') != name.npos;
  std::vector<Setting> found;
  if (!has_section) found = find_settings(name);
  if (found.empty()) {
    found = all_settings();
    const auto spelled = [&](const Setting& setting) {
      return has_section ? setting.name : last_word(setting.name);
    };
    std::vector<std::string> known;
    for (const Setting& setting : found) known.push_back(spelled(setting));
    const std::string near = nearest_name(name, known);
    std::erase_if(found, [&](const Setting& setting) { return spelled(setting) != near; });
  }
  return found.empty() ? "" : "did you mean " + quoted_list(distinct_names(found)) + "?";
}

std::string nearest_setting(const std::string& section, const std::string& name) {
  std::vector<std::string> known;
  for (const Setting& setting : all_settings()) {
    if (setting.name.starts_with(section + ".")) known.push_back(setting.name);
  }
  return nearest_name(name, known);
}

}  // namespace lra::training
