// Settings of records as lines of text, and what sets several of them apart.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/config.h"

namespace lra::report {

// "key=value", one for each setting.
using SettingLines = std::set<std::string>;

// Every setting of the table but the seeds, which never keep runs apart.
SettingLines setting_lines(ConfigTable table);

// Labels for each of several sets of settings: the lines that not all of them hold, joined by ", ".
// "base settings" for one that has none of its own, and nothing when there is only one set.
std::map<SettingLines, std::string> labels_apart(const std::set<SettingLines>& variants);

}  // namespace lra::report
