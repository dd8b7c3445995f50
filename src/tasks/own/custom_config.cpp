#include "tasks/own/custom_config.h"

#include <charconv>

namespace lra::tasks {
namespace {

// Settings as the manifest has them: text by name.
class ManifestSettings {
 public:
  explicit ManifestSettings(std::map<std::string, std::string> text) : text_(std::move(text)) {}

  template <ConfigScalar T>
  void operator()(const char* name, T& field, const char*, const Constraint& = {}) {
    const auto found = text_.find(name);
    if (found == text_.end()) return;
    const std::string& text = found->second;
    if constexpr (std::is_same_v<T, std::string>) {
      field = text;
    } else if constexpr (std::is_same_v<T, bool>) {
      field = text == "true";
    } else {
      (void)std::from_chars(text.data(), text.data() + text.size(), field);
    }
  }

 private:
  std::map<std::string, std::string> text_;
};

class ToManifest {
 public:
  template <ConfigScalar T>
  void operator()(const char* name, T& field, const char*, const Constraint& = {}) {
    if constexpr (std::is_same_v<T, std::string>) {
      text[name] = field;
    } else if constexpr (std::is_same_v<T, bool>) {
      text[name] = field ? "true" : "false";
    } else {
      text[name] = std::to_string(field);
    }
  }
  std::map<std::string, std::string> text;
};

}  // namespace

std::map<std::string, std::string> manifest_settings(CustomConfig config) {
  ToManifest settings;
  config.fields(settings);
  return std::move(settings.text);
}

CustomConfig config_of(const Manifest& manifest) {
  CustomConfig config;
  ManifestSettings settings(manifest.settings);
  config.fields(settings);
  return config;
}

}  // namespace lra::tasks
