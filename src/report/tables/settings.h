// Settings of records as lines of text, and the differences between several of them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/config.h"

namespace lra::report {

// "key=value", one for each setting.
using SettingLines = std::set<std::string>;

// Returns the line for runs that differ by a hash, "data=00112233".
std::string hash_line(const std::string& what, const std::string& hash);

// Every setting of the table but the seeds, which never keep runs apart.
SettingLines setting_lines(ConfigTable table);

// Labels that set several sets of settings apart: the first lines that not all of them hold, joined
// by ", ", and how many more there are. Settings that every set has come before those that only
// some have: a record of an earlier program lacks the later ones. "base settings" for a set without
// such lines, and nothing if there is only one set.
std::map<SettingLines, std::string> labels_apart(const std::set<SettingLines>& variants);
// Labels of the keys of a map.
template <typename Value>
auto labels_apart(const std::map<SettingLines, Value>& variants) {
  std::set<SettingLines> keys;
  for (const auto& [lines, value] : variants) keys.insert(lines);
  return labels_apart(keys);
}

}  // namespace lra::report
