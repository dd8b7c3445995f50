#include "tasks/own/json_rows.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/quoted.h"
#include "tasks/own/parquet.h"

namespace lra::tasks {
namespace {

constexpr JsonLimits kJsonLimits = {.max_bytes = size_t{1} << 30, .max_depth = 8, .max_keys = 1000};

// The type of a value in words; the reader of Parquet says which ones JSON lacks.
std::string type_of(const Json& value) {
  const bool is_other = value.is_object() && value.size() == 1 && value.contains(kOtherType);
  return is_other ? value[kOtherType].get<std::string>() : json_type_name(value);
}

void add_json_number(const Json& value, const std::string& where, OwnSequence& to) {
  if (!value.is_number()) refuse_data(where, "a list holds " + type_of(value), "numbers");
  add_number(value.get<double>(), value.is_number_integer(), where, to);
}

OwnSequence sequence_of(const Json& value, const std::string& where) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  if (!value.is_array()) {
    refuse_data(where, "a sequence is " + type_of(value), "a text or a list of finite numbers");
  }
  OwnSequence sequence{.channels = 1};
  const bool has_channels = !value.empty() && value[0].is_array();
  if (has_channels) sequence.channels = static_cast<int64_t>(value[0].size());
  if (sequence.channels == 0) refuse_data(where, "a position has no channels", "one or more");
  for (const Json& position : value) {
    if (!has_channels) {
      add_json_number(position, where, sequence);
      continue;
    }
    if (!position.is_array() || static_cast<int64_t>(position.size()) != sequence.channels) {
      refuse_data(where, "positions have different numbers of channels",
                  std::to_string(sequence.channels) + " in each");
    }
    for (const Json& number : position) add_json_number(number, where, sequence);
  }
  return sequence;
}

std::string label_of(const Json& value, const std::string& what, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || value.is_boolean()) return value.dump();
  const double number = value.is_number() ? value.get<double>() : 0.5;
  if (std::nearbyint(number) == number && std::abs(number) < 1e15) {
    return std::to_string(static_cast<int64_t>(number));
  }
  refuse_data(where, "the " + what + " is " + type_of(value), "a text or a whole number");
}

// Python writes NaN and Infinity, which are not JSON.
Json parse_row(std::string_view text, const std::string& where) {
  try {
    return parse_json(text, where, kJsonLimits);
  } catch (const Error&) {
    for (const char* name : {"NaN", "Infinity"}) {
      if (text.find(name) == std::string_view::npos) continue;
      refuse_data(where, "holds " + std::string(name) + ", which is not JSON", "finite numbers",
                  "replace missing values before the import");
    }
    throw;
  }
}

}  // namespace

OwnSequence sequence_of_json(std::string_view text, const std::string& where) {
  return sequence_of(parse_row(text, where), where);
}

void JsonRows::add_object(std::string_view text, const std::string& where) {
  if (text.starts_with('[')) {
    refuse_data(where, "is an array or begins one", "a JSON object on each line",
                "pandas: to_json(FILE, orient='records', lines=True)");
  }
  const Json row = parse_row(text, where);
  if (!row.is_object()) refuse_data(where, "is " + json_type_name(row), "a JSON object");
  if (names_.empty()) {
    for (const auto& [key, unused] : row.items()) names_.push_back(key);
  }
  OwnExample example = example_of(
      [&](size_t column) {
        const auto found = row.find(names_[column]);
        return found == row.end() ? nullptr : &*found;
      },
      where);
  for (const auto& [key, value] : row.items()) {
    if (std::ranges::find(names_, key) != names_.end()) continue;
    schema_.add_late_column(key, where);
    see_ignored(key, value, example);
  }
  sink_(where, std::move(example));
}

void JsonRows::add_list(std::string_view text, const std::string& where) {
  const Json row = parse_json(text, where, kJsonLimits);
  LRA_CHECK(row.is_array() && row.size() == names_.size());
  sink_(where, example_of([&](size_t column) { return &row[column]; }, where));
}

const Json& JsonRows::read(const Field& field, size_t column, const std::string& where) const {
  const Json* const value = field(column);
  if (!value) refuse_data(where, "has no field " + in_quotes(names_[column]), "one");
  return *value;
}

void JsonRows::see_ignored(const std::string& name, const Json& value, OwnExample& example) {
  if (value.is_null()) return;
  const std::string text = value.is_string()   ? value.get<std::string>()
                           : value.is_number() ? json_text(value)
                                               : "";
  schema_.see_ignored(name, text, example);
}

OwnExample JsonRows::example_of(const Field& field, const std::string& where) {
  if (!has_columns_) {
    has_columns_ = true;
    columns_ = schema_.columns_of(names_, where, TableKind::kRows, [&](size_t column) {
      const Json* const value = field(column);
      return value && value->is_number();
    });
  }
  OwnExample example;
  if (columns_.is_wide) example.sequences.push_back({.channels = 1});
  for (const size_t column : columns_.sequences) {
    const Json& value = read(field, column, where);
    const std::string place = where + " column " + in_quotes(names_[column]);
    if (!columns_.is_wide) {
      example.sequences.push_back(sequence_of(value, place));
    } else if (value.is_number()) {
      add_json_number(value, place, example.sequences[0]);
    } else {
      refuse_data(place, "holds " + type_of(value),
                  "a number, as in all columns but label and split");
    }
  }
  example.label = label_of(read(field, columns_.label, where), "label", where);
  if (columns_.split) {
    example.split = label_of(read(field, *columns_.split, where), "split", where);
  }
  for (const size_t column : columns_.ignored) {
    if (const Json* const value = field(column)) see_ignored(names_[column], *value, example);
  }
  return example;
}

}  // namespace lra::tasks
