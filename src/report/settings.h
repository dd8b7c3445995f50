// Settings of records as lines of text, and what sets several of them apart.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/config.h"

namespace lra::report {

// "key=value", one for each setting.
using SettingLines = std::set<std::string>;

// Every setting of the table but the seeds, which never keep runs apart.
SettingLines setting_lines(ConfigTable table);

// The setting `key` of the table `section` ("train", "steps"); null when one of them is not there.
const ConfigValue* find_setting(const ConfigTable& config, std::string_view section,
                                std::string_view key);

// Labels for each of several sets of settings: the lines that not all of them hold, joined by ", ".
// "base settings" for one that has none of its own, and nothing when there is only one set.
std::map<SettingLines, std::string> labels_apart(const std::set<SettingLines>& variants);

}  // namespace lra::report
