// Settings from TOML files and from the command line.
#pragma once

#include <string>
#include <string_view>

#include "base/config.h"

namespace lra {

// Reads a TOML file, or text that is called `name` in messages. Files over 64 KiB are refused.
ConfigTable parse_toml_file(const std::string& path);
ConfigTable parse_toml(std::string_view text, const std::string& name);

// One "--set key=value": dots walk into tables; the value is read as TOML, or as a bare string when
// it is a plain word. Throws when there is no '='.
void apply_override(ConfigTable& table, const std::string& assignment);

}  // namespace lra
