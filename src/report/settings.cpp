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
  if (variants.empty()) return {};
  SettingLines common = *variants.begin();
  for (const SettingLines& lines : variants) {
    std::erase_if(common, [&](const std::string& line) { return !lines.contains(line); });
  }
  std::map<SettingLines, std::string> labels;
  for (const SettingLines& lines : variants) {
    std::string label;
    for (const std::string& line : lines) {
      if (!common.contains(line)) label += (label.empty() ? "" : ", ") + line;
    }
    labels[lines] = label.empty() && variants.size() > 1 ? "base settings" : label;
  }
  return labels;
}

}  // namespace lra::report
