#include "tasks/custom/columns.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "base/quoted.h"

namespace lra::tasks {
namespace {

constexpr std::array<std::string_view, 14> kSequenceNames = {
    "text",   "review", "sentence", "content",  "document", "tokens", "input_ids",
    "values", "x",      "data",     "sequence", "features", "series", "inputs"};
constexpr std::array<std::array<std::string_view, 2>, 6> kPairNames = {{{"text1", "text2"},
                                                                        {"sentence1", "sentence2"},
                                                                        {"premise", "hypothesis"},
                                                                        {"question1", "question2"},
                                                                        {"tokens1", "tokens2"},
                                                                        {"x1", "x2"}}};
constexpr std::array<std::string_view, 7> kLabelNames = {"label", "labels",   "sentiment", "class",
                                                         "y",     "category", "target"};

// The name as it is compared: in small letters, without spaces around it.
std::string plain_name(std::string_view name) {
  constexpr std::string_view kSpace = " \t";
  const size_t begin = std::min(name.find_first_not_of(kSpace), name.size());
  std::string plain(name.substr(begin, name.find_last_not_of(kSpace) + 1 - begin));
  std::ranges::transform(plain, plain.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return plain;
}

std::vector<std::string> names_in_list(const std::string& list) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

class Finder {
 public:
  Finder(const std::vector<std::string>& names, const std::string& where, bool is_csv)
      : names_(names), where_(where), is_csv_(is_csv) {
    for (const std::string& name : names) plain_names_.push_back(plain_name(name));
  }

  std::optional<size_t> place_of(std::string_view name) const {
    const auto exact = std::ranges::find(names_, name);
    if (exact != names_.end()) return static_cast<size_t>(exact - names_.begin());
    const auto found = std::ranges::find(plain_names_, plain_name(name));
    if (std::ranges::count(plain_names_, plain_name(name)) != 1) return std::nullopt;
    return static_cast<size_t>(found - plain_names_.begin());
  }

  // The column that a setting names, which must exist.
  size_t named(const std::string& setting, const std::string& name) const {
    if (const auto place = place_of(name)) return *place;
    refuse("has no column " + in_quotes(name), "the name that " + setting + " gives");
  }

  // The only column with one of several usual names; nothing when none is there.
  template <size_t N>
  std::optional<size_t> usual(const std::array<std::string_view, N>& usual_names,
                              const std::string& setting) const {
    std::vector<std::string> found;
    std::optional<size_t> place;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (std::ranges::find(usual_names, plain_names_[i]) == usual_names.end()) continue;
      found.push_back(names_[i]);
      place = i;
    }
    if (found.size() > 1) {
      refuse("has columns " + quoted_list(found), "one", setting, /*may_lack_header=*/false);
    }
    return place;
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& expected,
                           const std::string& setting = "", bool may_lack_header = true) const {
    std::string advice = setting.empty() ? "" : "name it with --set " + setting + "=NAME";
    if (is_csv_ && may_lack_header && names_.at(0) != "c0") {
      advice += std::string(advice.empty() ? "i" : "; i") +
                "f the file has no header, name the columns by number: --set task.sequences=c0 "
                "--set task.label=c1";
    }
    throw Error({.where = where_,
                 .what = what,
                 .expected = expected + "; there are " + quoted_list(names_, 8),
                 .advice = advice});
  }

 private:
  const std::vector<std::string>& names_;
  const std::string& where_;
  const bool is_csv_;
  std::vector<std::string> plain_names_;
};

std::vector<size_t> named_sequences(const Finder& finder, const std::string& names) {
  std::vector<size_t> places;
  for (const std::string& name : names_in_list(names)) {
    places.push_back(finder.named("task.sequences", name));
  }
  if (places.size() <= 2) return places;
  throw Error({.where = "task.sequences",
               .what = std::to_string(places.size()) + " columns",
               .expected = "one, or two for pairs"});
}

std::vector<size_t> usual_sequences(const Finder& finder) {
  for (const auto& [first, second] : kPairNames) {
    const auto a = finder.place_of(first), b = finder.place_of(second);
    if (a && b) return {*a, *b};
  }
  const auto only = finder.usual(kSequenceNames, "task.sequences");
  return only ? std::vector<size_t>{*only} : std::vector<size_t>{};
}

}  // namespace

Columns find_columns(const std::vector<std::string>& names, const ColumnSettings& settings,
                     const std::string& where, bool is_csv) {
  const Finder finder(names, where, is_csv);
  Columns columns;
  const auto label = settings.label.empty()
                         ? finder.usual(kLabelNames, "task.label")
                         : std::optional(finder.named("task.label", settings.label));
  if (!label) finder.refuse("has no column of labels", "one named label", "task.label");
  columns.label = *label;
  columns.split = settings.split.empty() ? finder.place_of("split")
                                         : finder.named("task.split", settings.split);
  columns.sequences = settings.sequences.empty() ? usual_sequences(finder)
                                                 : named_sequences(finder, settings.sequences);
  if (!columns.sequences.empty()) return columns;
  for (size_t i = 0; is_csv && i < names.size(); ++i) {
    if (i != columns.label && i != columns.split) columns.sequences.push_back(i);
  }
  columns.is_wide = columns.sequences.size() > 1;
  if (columns.sequences.empty()) {
    finder.refuse("has no column of sequences", "one named text, tokens or values",
                  "task.sequences");
  }
  return columns;
}

bool are_numbered(const ColumnSettings& settings, const std::vector<std::string>& names) {
  const auto is_number = [](const std::string& name) {
    return name.size() > 1 && name[0] == 'c' &&
           name.find_first_not_of("0123456789", 1) == std::string::npos;
  };
  for (const std::string& list : {settings.sequences, settings.label, settings.split}) {
    for (const std::string& name : names_in_list(list)) {
      if (is_number(name) && std::ranges::find(names, name) == names.end()) return true;
    }
  }
  return false;
}

}  // namespace lra::tasks
