// Settings of a record by name.
#pragma once

#include <optional>
#include <string_view>

#include "base/config.h"

namespace lra {

// The setting `key` of the table `section` ("train", "steps"); null if one of them is missing.
inline const ConfigValue* find_setting(const ConfigTable& config, std::string_view section,
                                       std::string_view key) {
  const ConfigValue* table = config.find(section);
  return table && table->as_table() ? table->as_table()->find(key) : nullptr;
}

// The same for a setting of type Value; nullopt if it is missing or of another type.
template <typename Value>
std::optional<Value> find_setting_as(const ConfigTable& config, std::string_view section,
                                     std::string_view key) {
  const ConfigValue* found = find_setting(config, section, key);
  const Value* value = found ? std::get_if<Value>(&found->value) : nullptr;
  return value ? std::optional<Value>(*value) : std::nullopt;
}

// True for the settings of a run that predicts masked inputs instead of labels.
inline bool is_masked_run(const ConfigTable& config) {
  return find_setting_as<std::string>(config, "train", "objective") == "masked";
}

}  // namespace lra
