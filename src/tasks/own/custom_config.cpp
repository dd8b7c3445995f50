#include "tasks/own/custom_config.h"

#include <charconv>

namespace lra::tasks {

std::map<std::string, std::string> manifest_settings(const CustomConfig& config) {
  std::map<std::string, std::string> settings;
  for (const auto& [name, value] : write_config(config)) {
    const auto* text = std::get_if<std::string>(&value.value);
    settings[name] = text ? *text : setting_text(value);
  }
  return settings;
}

CustomConfig config_of(const Manifest& manifest) {
  CustomConfig config;
  const auto read = [&](const char* name, auto& field, const char*, const Constraint& = {}) {
    const auto found = manifest.settings.find(name);
    if (found == manifest.settings.end()) return;
    const std::string& text = found->second;
    if constexpr (std::is_same_v<decltype(field), std::string&>) {
      field = text;
    } else if constexpr (std::is_same_v<decltype(field), bool&>) {
      field = text == "true";
    } else {
      (void)std::from_chars(text.data(), text.data() + text.size(), field);
    }
  };
  config.fields(read);
  return config;
}

}  // namespace lra::tasks
