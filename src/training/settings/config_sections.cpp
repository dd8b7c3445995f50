#include "training/settings/config_sections.h"

#include <algorithm>
#include <iterator>

#include "base/quoted.h"
#include "training/settings/setting_list.h"

namespace lra::training {
namespace {

constexpr const char* kSections[] = {"task", "model", "mixer", "train", "groups"};

// The advice for settings of an unknown section, or for a setting without its section if `value` is
// one.
std::string section_advice(const std::string& key, const ConfigValue& value,
                           const std::vector<std::string>& known) {
  const ConfigTable* table = value.as_table();
  if (key.find('.') != key.npos && nearest_setting(key.substr(0, key.find('.')), key) == key)
    return "write it without quotes: " + key + " = VALUE";
  const std::string setting = table ? "" : setting_suggestion(key);
  if (!setting.empty()) return setting;
  const std::string near = nearest_name(key, known);
  if (near.empty() || !table || table->empty()) return suggestion(key, known);
  const std::string full = nearest_setting(near, near + "." + table->begin()->key);
  return "did you mean " + in_quotes(full.empty() ? near : full) + "?";
}

}  // namespace

const ConfigTable& section(const ConfigTable& table, std::string_view name) {
  static const ConfigTable empty;
  const ConfigValue* found = table.find(name);
  if (!found) return empty;
  if (!found->as_table()) {
    throw Error({.where = found->where,
                 .what = std::string(name) + " is not a table",
                 .expected = "[" + std::string(name) + "]"});
  }
  return *found->as_table();
}

void merge_sections(ConfigTable& settings, const ConfigTable& from) {
  for (const char* name : kSections) merge(settings.table(name), section(from, name));
}

void refuse_unknown_sections(const ConfigTable& settings, const std::vector<std::string>& besides) {
  std::vector<std::string> known(std::begin(kSections), std::end(kSections));
  known.insert(known.end(), besides.begin(), besides.end());
  for (const auto& [key, value] : settings) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw Error({.where = value.where,
                   .what = std::string("unknown ") + (value.as_table() ? "section " : "setting ") +
                           in_quotes(key),
                   .advice = section_advice(key, value, known)});
    }
  }
}

}  // namespace lra::training
