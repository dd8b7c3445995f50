#include "report/settings.h"

#include <functional>
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

std::string key_of(const std::string& line) { return line.substr(0, line.find('=')); }

using Labels = std::map<SettingLines, std::string>;

// The lines of each set that `tells` picks, ", " between.
Labels labels_of(const std::set<SettingLines>& variants,
                 const std::function<bool(const std::string&)>& tells) {
  Labels labels;
  for (const SettingLines& lines : variants) {
    std::string& label = labels[lines];
    for (const std::string& line : lines) {
      if (tells(line)) label += (label.empty() ? "" : ", ") + line;
    }
  }
  return labels;
}

bool all_differ(const Labels& labels) {
  std::set<std::string> seen;
  for (const auto& [lines, label] : labels) seen.insert(label);
  return seen.size() == labels.size();
}

}  // namespace

SettingLines setting_lines(ConfigTable table) {
  erase_seeds(table);
  std::istringstream text(canonical_text(table));
  SettingLines lines;
  for (std::string line; std::getline(text, line);) lines.insert(line);
  return lines;
}

const ConfigValue* find_setting(const ConfigTable& config, std::string_view section,
                                std::string_view key) {
  const ConfigValue* table = config.find(section);
  return table && table->as_table() ? table->as_table()->find(key) : nullptr;
}

std::map<SettingLines, std::string> labels_apart(const std::set<SettingLines>& variants) {
  std::map<std::string, size_t> line_counts, key_counts;
  for (const SettingLines& lines : variants) {
    for (const std::string& line : lines) {
      ++line_counts[line];
      ++key_counts[key_of(line)];
    }
  }
  const auto in_all = [&](size_t count) { return count == variants.size(); };
  auto labels = labels_of(variants, [&](const std::string& line) {
    return !in_all(line_counts[line]) && in_all(key_counts[key_of(line)]);
  });
  if (!all_differ(labels)) {
    labels =
        labels_of(variants, [&](const std::string& line) { return !in_all(line_counts[line]); });
  }
  for (auto& [lines, label] : labels) {
    if (label.empty() && variants.size() > 1) label = "base settings";
  }
  return labels;
}

}  // namespace lra::report
