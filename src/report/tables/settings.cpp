#include "report/tables/settings.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/config.h"
#include "report/lists.h"

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

// Labels of at most `most` lines.
std::map<SettingLines, std::string> shortened_labels(const std::set<SettingLines>& variants,
                                                     size_t most) {
  std::map<std::string, size_t> counts, key_counts;
  for (const SettingLines& lines : variants) {
    for (const std::string& line : lines) {
      ++counts[line];
      ++key_counts[key_of(line)];
    }
  }
  std::map<SettingLines, std::string> labels;
  for (const SettingLines& lines : variants) {
    std::vector<std::string> apart;
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(apart),
                 [&](const std::string& line) { return counts[line] < variants.size(); });
    std::stable_partition(apart.begin(), apart.end(), [&](const std::string& line) {
      return key_counts[key_of(line)] == variants.size();
    });
    if (apart.size() > most) {
      const std::string more = std::to_string(apart.size() - most) + " more";
      apart.resize(most);
      apart.push_back(more);
    }
    labels[lines] = apart.empty() && variants.size() > 1 ? "base settings" : joined(apart);
  }
  return labels;
}

}  // namespace

std::string hash_line(const std::string& what, const std::string& hash) {
  constexpr size_t kShownDigits = 8;
  return what + "=" + hash.substr(0, kShownDigits);
}

SettingLines setting_lines(ConfigTable table) {
  erase_seeds(table);
  SettingLines lines;
  for (const auto& [name, value] : setting_texts(table)) lines.insert(name + "=" + value);
  return lines;
}

std::map<SettingLines, std::string> labels_apart(const std::set<SettingLines>& variants) {
  size_t longest = 0;
  for (const SettingLines& lines : variants) longest = std::max(longest, lines.size());
  for (size_t most = 4;; ++most) {
    auto labels = shortened_labels(variants, most);
    std::set<std::string> distinct;
    for (const auto& [lines, label] : labels) distinct.insert(label);
    if (distinct.size() == variants.size() || most >= longest) return labels;
  }
}

}  // namespace lra::report
