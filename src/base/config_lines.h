// Settings as text, each in one spelling.
#pragma once

#include <map>
#include <string>

#include "base/config.h"

namespace lra {

// A value as TOML writes it.
std::string setting_text(const ConfigValue& value);
// The values of all settings of a table, by their full names: "train.steps" -> "5000".
std::map<std::string, std::string> setting_texts(const ConfigTable& table);

}  // namespace lra
