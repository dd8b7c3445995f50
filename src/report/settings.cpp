#include "report/settings.h"

#include <sstream>
#include <vector>

namespace lra::report {
namespace {

void erase_seeds(ConfigTable& table) {
  table.erase("seed");
  std::vector<std::string> inner;
  for (const auto& [key, value] : table) {
    if (value.as_table()) inner.push_back(key);
  }
  for (const std::string& key : inner) erase_seeds(table.table(key));
}

}  // namespace

SettingLines setting_lines(ConfigTable table) {
  erase_seeds(table);
  std::istringstream text(canonical_text(table));
  SettingLines lines;
  for (std::string line; std::getline(text, line);) lines.insert(line);
  return lines;
}

std::map<SettingLines, std::string> labels_apart(const std::set<SettingLines>& variants) {
  std::map<std::string, size_t> counts;
  for (const SettingLines& lines : variants) {
    for (const std::string& line : lines) ++counts[line];
  }
  std::map<SettingLines, std::string> labels;
  for (const SettingLines& lines : variants) {
    std::string& label = labels[lines];
    for (const std::string& line : lines) {
      if (counts[line] < variants.size()) label += (label.empty() ? "" : ", ") + line;
    }
    if (label.empty() && variants.size() > 1) label = "base settings";
  }
  return labels;
}

}  // namespace lra::report
