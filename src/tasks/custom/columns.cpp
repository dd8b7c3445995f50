#include "tasks/custom/columns.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "base/quoted.h"

namespace lra::tasks {
namespace {

constexpr std::array<std::string_view, 15> kSequenceNames = {
    "text", "review", "sentence", "content",  "document", "tokens", "input_ids", "values",
    "x",    "X",      "data",     "sequence", "features", "series", "inputs"};
constexpr std::array<std::array<std::string_view, 2>, 6> kPairNames = {{{"text1", "text2"},
                                                                        {"sentence1", "sentence2"},
                                                                        {"premise", "hypothesis"},
                                                                        {"question1", "question2"},
                                                                        {"tokens1", "tokens2"},
                                                                        {"x1", "x2"}}};
constexpr std::array<std::string_view, 8> kLabelNames = {"label", "labels",   "sentiment", "class",
                                                         "y",     "category", "target",    "Y"};

class Finder {
 public:
  Finder(const std::vector<std::string>& names, const std::string& where)
      : names_(names), where_(where) {}

  std::optional<size_t> place_of(std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) return std::nullopt;
    return static_cast<size_t>(found - names_.begin());
  }

  // One that a setting names, which must be there.
  size_t named(const std::string& setting, const std::string& name) const {
    if (const auto place = place_of(name)) return *place;
    refuse("has no column " + in_quotes(name), "the name that " + setting + " gives");
  }

  // The only one of several usual names; nothing when none is there.
  template <size_t N>
  std::optional<size_t> usual(const std::array<std::string_view, N>& usual_names,
                              const std::string& setting) const {
    std::vector<std::string> found;
    for (const std::string_view name : usual_names) {
      if (place_of(name)) found.emplace_back(name);
    }
    if (found.empty()) return std::nullopt;
    if (found.size() > 1) refuse("has columns " + quoted_list(found), "one", setting);
    return place_of(found[0]);
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& expected,
                           const std::string& setting = "") const {
    throw Error({.where = where_,
                 .what = what,
                 .expected = expected + "; there are " + quoted_list(names_, 8),
                 .advice = setting.empty() ? "" : "name it with --set " + setting + "=NAME"});
  }

 private:
  const std::vector<std::string>& names_;
  const std::string& where_;
};

std::vector<size_t> named_sequences(const Finder& finder, const std::string& names) {
  std::vector<size_t> places;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    places.push_back(finder.named("task.sequences", names.substr(begin, end - begin)));
    begin = end + 1;
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
                     const std::string& where, bool may_be_wide) {
  const Finder finder(names, where);
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
  for (size_t i = 0; may_be_wide && i < names.size(); ++i) {
    if (i != columns.label && i != columns.split) columns.sequences.push_back(i);
  }
  columns.is_wide = true;
  if (columns.sequences.empty()) {
    finder.refuse("has no column of sequences", "one named text, tokens or values",
                  "task.sequences");
  }
  return columns;
}

}  // namespace lra::tasks
