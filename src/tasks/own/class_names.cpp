#include "tasks/own/class_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "base/quoted.h"
#include "tasks/own/examples.h"

namespace lra::tasks {
namespace {

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = problem == std::errc() && end == text.data() + text.size();
  return is_number ? std::optional(number) : std::nullopt;
}

// In small letters, without spaces.
std::string plain_label(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '\t') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

// -1 is also the second of two classes.
bool may_mark_missing(const std::string& name, const std::vector<std::string>& names) {
  constexpr std::array<std::string_view, 12> kMarks = {
      "",     "nan", "none",    "null",  "n/a",       "na",
      "#n/a", "?",   "unknown", "unsup", "unlabeled", "unlabelled"};
  const std::vector<std::string> signs = {"-1", "1"};
  const bool are_signs = std::ranges::all_of(
      names, [&](const auto& n) { return std::ranges::find(signs, n) != signs.end(); });
  return std::ranges::find(kMarks, plain_label(name)) != kMarks.end() ||
         (name == "-1" && !are_signs);
}

}  // namespace

std::string class_name(const std::string& label, const std::string& where) {
  constexpr size_t kMostBytes = 500;
  if (label.empty()) refuse_data(where, "the label is empty", "a name or a number");
  if (label.size() > kMostBytes) {
    refuse_data(where, "the label has " + std::to_string(label.size()) + " bytes",
                "a name of at most " + std::to_string(kMostBytes),
                "name the column of labels with --set task.label=NAME");
  }
  const size_t point = label.find('.');
  if (point == std::string::npos || label.find_first_not_of('0', point + 1) != std::string::npos) {
    return label;
  }
  std::string whole = label.substr(0, point);
  return whole_number(whole) ? whole : label;
}

std::vector<std::string> sorted_class_names(const std::set<std::string>& names) {
  constexpr size_t kFewestTargets = 10;
  std::vector<std::string> sorted(names.begin(), names.end());
  if (sorted.size() == 1) {
    refuse_data("labels", "all examples have the label " + in_quotes(sorted[0]),
                "two classes or more");
  }
  const auto is_whole = [](const std::string& name) { return whole_number(name).has_value(); };
  if (std::ranges::all_of(sorted, is_whole)) {
    std::ranges::stable_sort(sorted, {}, [](const auto& name) { return *whole_number(name); });
  } else if (sorted.size() >= kFewestTargets && std::ranges::all_of(sorted, is_single_number)) {
    refuse_data("labels", "they are real numbers, such as " + quoted_list(sorted),
                "names or whole numbers of classes", "replace each number by that of a class");
  }
  return sorted;
}

std::vector<std::string> doubts_of_class_names(const std::vector<std::string>& names) {
  std::vector<std::string> doubts;
  std::map<std::string, std::string> seen;
  for (const std::string& name : names) {
    const auto [first, is_new] = seen.emplace(plain_label(name), name);
    if (!is_new) {
      doubts.push_back("the labels " + in_quotes(first->second) + " and " + in_quotes(name) +
                       " differ only in letter case or spaces: are they one class?");
    }
    if (may_mark_missing(name, names)) {
      doubts.push_back("the label " + in_quotes(name) +
                       " is a class of its own: does it mark what is missing?");
    }
  }
  return doubts;
}

}  // namespace lra::tasks
