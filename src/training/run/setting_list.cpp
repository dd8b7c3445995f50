#include "training/run/setting_list.h"

#include <algorithm>

#include "base/quoted.h"
#include "mixers/all.h"
#include "models/model_config.h"
#include "tasks/all.h"
#include "training/run/group_config.h"
#include "training/run/train_config.h"

namespace lra::training {
namespace {

class SettingList {
 public:
  void add(const std::string& section, std::string_view owner,
           const std::vector<FieldInfo>& fields) {
    for (const FieldInfo& field : fields) {
      const std::string name = section + "." + field.name;
      const auto same = std::ranges::find_if(settings_, [&](const Setting& known) {
        const FieldInfo& f = known.field;
        return known.name == name && f.type == field.type && f.range == field.range &&
               f.default_value == field.default_value && f.help == field.help;
      });
      if (same == settings_.end()) {
        settings_.push_back({name, std::string(owner), field});
      } else {
        same->owners += ", " + std::string(owner);
      }
    }
  }
  std::vector<Setting> take() { return std::move(settings_); }

 private:
  std::vector<Setting> settings_;
};

std::vector<Setting> all_settings() {
  SettingList list;
  list.add("train", "", describe_config<TrainConfig>());
  list.add("model", "", describe_config<models::ModelConfig>());
  for (const tasks::TaskSpec* task : tasks::all_tasks()) {
    list.add("task", task->name, task->describe());
  }
  for (const mixers::LayerSpec* mixer : mixers::kAllMixers) {
    list.add("mixer", mixer->name, mixer->describe());
    for (const mixers::GroupSpec& group : mixer->groups) {
      list.add("groups." + std::string(group.name), mixer->name,
               describe_config(group_defaults(group)));
    }
  }
  return list.take();
}

std::string last_word(const std::string& name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::vector<Setting> find_settings(const std::string& name) {
  std::vector<Setting> found = all_settings();
  std::erase_if(found, [&](const Setting& setting) {
    return setting.name != name && last_word(setting.name) != name &&
           !setting.name.starts_with(name + ".");
  });
  return found;
}

std::string setting_suggestion(const std::string& name) {
  const std::vector<Setting> all = all_settings();
  const auto spelled = [&](const Setting& setting) {
    return name.find('.') == std::string::npos ? last_word(setting.name) : setting.name;
  };
  std::vector<std::string> known;
  for (const Setting& setting : all) known.push_back(spelled(setting));
  const std::string near = nearest_name(name, known);
  std::vector<std::string> found;
  for (const Setting& setting : all) {
    if (near.empty() || spelled(setting) != near) continue;
    if (std::ranges::find(found, setting.name) == found.end()) found.push_back(setting.name);
  }
  return found.empty() ? "" : "did you mean " + quoted_list(found) + "?";
}

std::string nearest_setting(const std::string& section, const std::string& name) {
  std::vector<std::string> known;
  for (const Setting& setting : all_settings()) {
    if (setting.name.starts_with(section + ".")) known.push_back(setting.name);
  }
  return nearest_name(name, known);
}

}  // namespace lra::training
