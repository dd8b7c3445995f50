#include "checks/remarks.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/quoted.h"
#include "base/text_format.h"

namespace lra::checks {
namespace {

// In small letters, without spaces.
std::string plain_label(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '\t') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

bool may_mark_missing(const std::string& plain) {
  constexpr std::array<std::string_view, 10> kMarks = {
      "nan", "none", "null", "n/a", "na", "#n/a", "?", "unknown", "unlabeled", "unlabelled"};
  return std::ranges::find(kMarks, plain) != kMarks.end();
}

}  // namespace

void remark_labels(const SplitStats& train, const std::vector<std::string>& names,
                   std::vector<std::string>& found) {
  constexpr int64_t kTimes = 10;
  const auto [least, most] = std::ranges::minmax(train.classes);
  if (most > kTimes * least) {
    found.push_back("uneven classes: " + thousands(most) + " training examples of one, " +
                    thousands(least) + " of another");
  }
  std::map<std::string, std::string> seen;
  for (const std::string& name : names) {
    const auto [first, is_new] = seen.emplace(plain_label(name), name);
    if (!is_new) {
      found.push_back("the labels " + in_quotes(first->second) + " and " + in_quotes(name) +
                      " differ only in letter case or spaces");
    } else if (may_mark_missing(first->first)) {
      found.push_back("the label " + in_quotes(name) + " is a class of its own");
    }
  }
}

void remark_channels(const SplitStats& train, std::vector<std::string>& found) {
  if (train.channels.size() < 2) return;
  const auto count =
      std::ranges::count_if(train.channels, [](const auto& c) { return c.is_constant(); });
  if (count == 0) return;
  found.push_back(std::to_string(count) + " of " + std::to_string(train.channels.size()) +
                  " channels never vary in train");
}

}  // namespace lra::checks
