#include "tasks/own/columns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "tasks/own/column_names.h"
#include "tasks/own/examples.h"

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

// The columns besides label and split.
std::vector<size_t> others_of(const Columns& columns, size_t count) {
  std::vector<size_t> others;
  for (size_t i = 0; i < count; ++i) {
    if (i != columns.label && i != columns.split) others.push_back(i);
  }
  return others;
}

// One sequence of bytes or tokens is in each cell; a single number belongs to a wider table.
void refuse_single_numbers(const Columns& columns, const std::vector<std::string>& names,
                           const std::string& where, const std::function<bool(size_t)>& is_number) {
  if (columns.ignored.empty() || !std::ranges::all_of(columns.sequences, is_number)) return;
  std::vector<std::string> ignored;
  for (const size_t i : columns.ignored) ignored.push_back(names[i]);
  refuse_data(where,
              "column " + in_quotes(names[columns.sequences[0]]) + " holds a single number, and " +
                  quoted_list(ignored, 8) + " would not be read",
              "a column of sequences, or numbers in all columns but label and split",
              "remove columns that are not numbers, or name the column of sequences with --set "
              "task.sequences=NAME");
}

// A table without a column of sequences, of which every column should be a position.
void refuse_texts(const std::vector<size_t>& columns, const std::vector<std::string>& names,
                  const std::string& where, const std::function<bool(size_t)>& is_number) {
  std::vector<std::string> others;
  for (const size_t i : columns) {
    if (!is_number(i)) others.push_back(names[i]);
  }
  if (columns.size() < 2 || others.empty()) return;
  refuse_data(
      where,
      (others.size() == 1 ? "column " : "columns ") + quoted_list(others, 8) +
          (others.size() == 1 ? " holds no number" : " hold no numbers") +
          " in the first row, and no column has the name of sequences",
      "numbers in all columns but label and split, or a column named text, tokens or values",
      "remove columns that are not numbers, fill in what is missing, or name the column of "
      "sequences with --set task.sequences=NAME");
}

Columns find_columns(const std::vector<std::string>& names, const ColumnSettings& settings,
                     const std::string& where, TableKind kind,
                     const std::function<bool(size_t)>& is_number) {
  const Finder finder(names, where, kind == TableKind::kCsv);
  Columns columns;
  const auto label = settings.label.empty()
                         ? finder.usual(kLabelNames, "task.label")
                         : std::optional(finder.named("task.label", settings.label));
  if (!label) finder.refuse("has no column of labels", "one named label", "task.label");
  columns.label = *label;
  columns.split = settings.split.empty() ? finder.place_of("split")
                                         : finder.named("task.split", settings.split);
  const std::vector<size_t> others = others_of(columns, names.size());
  columns.is_wide = kind != TableKind::kArrays && settings.sequences.empty() && others.size() > 1 &&
                    std::ranges::all_of(others, is_number);
  if (!columns.is_wide) {
    columns.sequences = settings.sequences.empty() ? usual_sequences(finder)
                                                   : named_sequences(finder, settings.sequences);
  }
  for (const size_t column : columns.sequences) {
    if (column != columns.label && column != columns.split) continue;
    refuse_data(where, "column " + in_quotes(names[column]) + " is named twice",
                "different columns for sequences, label and split",
                "change task.sequences or task.label");
  }
  if (columns.sequences.empty() && (columns.is_wide || kind == TableKind::kCsv)) {
    refuse_texts(others, names, where, is_number);
    columns.sequences = others;
    columns.is_wide = others.size() > 1;
  }
  if (columns.sequences.empty()) {
    finder.refuse("has no column of sequences", "one named text, tokens or values",
                  "task.sequences");
  }
  for (const size_t i : others) {
    const bool is_read = std::ranges::find(columns.sequences, i) != columns.sequences.end();
    if (!is_read) columns.ignored.push_back(i);
  }
  if (kind != TableKind::kArrays && settings.sequences.empty()) {
    refuse_single_numbers(columns, names, where, is_number);
  }
  return columns;
}

// Names of columns that are read wherever a file has them.
bool is_usual(const std::string& name) {
  const std::string plain = plain_name(name);
  const auto holds = [&](const auto& names) {
    return std::ranges::find(names, plain) != names.end();
  };
  return plain == "split" || holds(kSequenceNames) || holds(kLabelNames) ||
         std::ranges::any_of(kPairNames, holds);
}

// True for names of ids, such as "film_id", "userId" and "Patient", and of files.
bool is_name_of_id(std::string_view name) {
  constexpr std::array<std::string_view, 26> kNames = {
      "author",     "case",        "customer", "episode", "file",    "filename", "group",
      "individual", "participant", "patient",  "path",    "person",  "pid",      "record",
      "recording",  "sensor",      "session",  "source",  "speaker", "subj",     "subject",
      "trial",      "uid",         "url",      "user",    "video"};
  constexpr std::array<std::string_view, 6> kEndings = {"_id",   "-id",   " id",
                                                        "_file", "_path", "_name"};
  const std::string plain = plain_name(name);
  return std::ranges::find(kNames, plain) != kNames.end() || name.ends_with("Id") ||
         std::ranges::any_of(kEndings, [&](std::string_view end) { return plain.ends_with(end); });
}

// Numbers in their order.
uint64_t key_of(std::string_view value) {
  int64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, problem] = std::from_chars(value.data(), end, number);
  if (problem != std::errc() || stop != end) return hash64(value);
  return static_cast<uint64_t>(number) ^ (uint64_t{1} << 63);
}

}  // namespace

bool Schema::has_name_of_id(const std::string& name) { return is_name_of_id(name); }

Columns Schema::columns_of(const std::vector<std::string>& names, const std::string& where,
                           TableKind kind, const std::function<bool(size_t)>& is_number) {
  Columns columns;
  if (sequences_.empty()) {
    columns = find_columns(names, settings_, where, kind, is_number);
    for (const size_t i : columns.sequences) sequences_.push_back(names[i]);
    label_ = names[columns.label];
    if (columns.split) split_ = names[*columns.split];
    is_wide_ = columns.is_wide;
    first_ = where;
  } else {
    columns = same_columns(names, where);
  }
  if (is_wide_) {
    std::vector<std::string> inputs;
    for (const size_t i : columns.sequences) inputs.push_back(names[i]);
    for (const std::string& name : inputs) refuse_odd_name(name, true, where);
    refuse_unlike_names(inputs, where);
    refuse_order_of_words(inputs, where);
  }
  if (kind == TableKind::kArrays) return columns;  // the reader refuses what it does not read
  for (const size_t i : columns.ignored) {
    refuse_odd_name(names[i], false, where);
    note_ignored(names[i], where);
  }
  return columns;
}

Columns Schema::same_columns(const std::vector<std::string>& names,
                             const std::string& where) const {
  const Finder finder(names, where, false);
  Columns columns;
  columns.is_wide = is_wide_;
  const auto place = [&](const std::string& name) {
    if (const auto found = finder.place_of(name)) return *found;
    finder.refuse("has no column " + in_quotes(name), "the columns of " + first_);
  };
  for (const std::string& name : sequences_) columns.sequences.push_back(place(name));
  columns.label = place(label_);
  if (!split_.empty()) columns.split = place(split_);
  for (const size_t i : others_of(columns, names.size())) {
    if (std::ranges::find(columns.sequences, i) != columns.sequences.end()) continue;
    if (is_wide_ || (is_usual(names[i]) && !ignored_.contains(names[i])))
      refuse_late(names[i], where, first_);
    columns.ignored.push_back(i);
  }
  return columns;
}

void Schema::refuse_late(const std::string& name, const std::string& where,
                         const std::string& before) {
  refuse_data(where, "has the column " + in_quotes(name) + ", which " + before + " does not have",
              "the same columns in all rows and files",
              "add it everywhere, or remove or rename it");
}

void Schema::add_late_column(const std::string& name, const std::string& where) {
  if (ignored_.contains(name)) return;
  if (is_wide_ || is_usual(name)) refuse_late(name, where, "the first row");
  refuse_odd_name(name, false, where);
  note_ignored(name, where);
}

// Any short value but a fraction, unless nearly every row has its own.
bool Schema::may_be_id(const std::string& name, std::string_view value, IgnoredValues& values) {
  constexpr size_t kLongest = 64;
  constexpr int64_t kFewest = 100'000;
  if (is_name_of_id(name)) return true;
  if (!values.may_be_ids || value.size() > kLongest) return false;
  if (is_single_number(std::string(value)) && value.find_first_of(".eE") != value.npos) {
    return false;
  }
  values.keys.insert(key_of(value));
  values.may_be_ids =
      ++values.count < kFewest || 5 * static_cast<int64_t>(values.keys.size()) < 4 * values.count;
  if (!values.may_be_ids) values.keys.clear();
  return values.may_be_ids;
}

void Schema::note_ignored(const std::string& name, const std::string& where) {
  ignored_.try_emplace(
      name, IgnoredValues{.where = where, .number = static_cast<uint32_t>(ignored_.size())});
}

void Schema::see_ignored(const std::string& name, std::string_view value, OwnExample& example) {
  IgnoredValues& values = ignored_[name];
  values.any = true;
  if (!value.empty() && may_be_id(name, value, values)) {
    example.ids.emplace_back(values.number, key_of(value));
  }
  values.all_splits = values.all_splits && !split_of_name(value).empty();
}

void Schema::refuse_unread_splits() const {
  for (const auto& [name, values] : ignored_) {
    if (!values.any || !values.all_splits) continue;
    refuse_data(values.where, "column " + in_quotes(name) + " is not read, and names splits",
                "a column that can be ignored",
                "name it with --set task.split=" + name + ", or remove it");
  }
}

uint32_t Schema::number_of_ignored(const std::string& name) const {
  return ignored_.at(name).number;
}

std::vector<std::string> Schema::ignored_names() const {
  std::vector<std::string> names;
  for (const auto& [name, unused] : ignored_) names.push_back(name);
  return names;
}

bool is_name_of_tokens(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"tokens", "tokens1", "tokens2", "input_ids"};
  return std::ranges::find(kNames, plain_name(name)) != kNames.end();
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
