// Configuration as plain structs.
//
// A config is a struct with defaults and one visitor that lists its fields:
//
//   struct LinformerConfig {
//     int64_t rank = 256;
//     void fields(auto& f) { f("rank", rank, "length of the projected keys and values",
//     at_least(1)); }
//   };
//
// That one list serves reading TOML (read_config), writing the resolved TOML (write_config), help
// (describe_config) and comparison. Constraints between fields are checked by a member check(),
// which throws lra::Error. Tables are merged first (defaults < task < model < suite < --set), then
// read once and strictly: an unknown key, a wrong type or a value out of range is an lra::Error
// that names file and line, or the flag, and the nearest known key.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.h"

namespace lra {

// ---- tables

struct ConfigValue;
struct ConfigEntry;
using ConfigList = std::vector<ConfigValue>;

// A table keeps the order of its keys, so that it is written in the order in which it was read.
class ConfigTable {
 public:
  using Entries = std::vector<ConfigEntry>;
  ConfigValue* find(std::string_view key);
  const ConfigValue* find(std::string_view key) const;
  // Replaces or appends.
  void set(const std::string& key, ConfigValue value);
  void erase(std::string_view key);
  // The table under `key`, made when missing; an Error when the key holds something else.
  ConfigTable& table(const std::string& key);
  bool empty() const;
  size_t size() const;
  Entries::const_iterator begin() const;
  Entries::const_iterator end() const;

 private:
  Entries entries_;
};

struct ConfigValue {
  std::variant<bool, int64_t, double, std::string, ConfigList, ConfigTable> value;
  std::string where;  // "configs/tasks/text.toml:12" or "--set task.length"

  const ConfigTable* as_table() const { return std::get_if<ConfigTable>(&value); }
  ConfigTable* as_table() { return std::get_if<ConfigTable>(&value); }
};

struct ConfigEntry {
  std::string key;
  ConfigValue value;
};

// These are down here because they need complete entries, which need ConfigValue: clang refuses a
// std::pair for an entry.
inline bool ConfigTable::empty() const { return entries_.empty(); }
inline size_t ConfigTable::size() const { return entries_.size(); }
inline ConfigTable::Entries::const_iterator ConfigTable::begin() const { return entries_.begin(); }
inline ConfigTable::Entries::const_iterator ConfigTable::end() const { return entries_.end(); }

// Maximum nesting of tables and lists.
inline constexpr int kMaxConfigDepth = 32;

// TOML text: plain keys first, then one [section] per table. Strings are escaped.
std::string to_toml(const ConfigTable& table);
std::string number_text(double value);  // shortest that reads back, with a point or an exponent
std::string setting_text(const ConfigValue& value);  // as TOML writes it
// The values of all settings of a table, by their full names: "train.steps" -> "5000".
std::map<std::string, std::string> setting_texts(const ConfigTable& table);

// Keys of `over` win; tables are merged key by key.
void merge(ConfigTable& base, const ConfigTable& over);

// True if a key needs no quotes in TOML, and a value none in --set: letters, digits, '_' and '-'.
bool is_bare_key(std::string_view key);

// Canonical text of a table (keys sorted, values in one spelling): equal settings give equal text.
// Hashed for the fingerprint of a run.
std::string canonical_text(const ConfigTable& table);

// The known name nearest to `name` by edit distance, or empty when none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);
// "did you mean 'x'?", or a list of the known names: "known: a, b".
std::string suggestion(std::string_view name, const std::vector<std::string>& known);

// ---- fields

// Constraint on a value. Numbers: low <= value <= high. Strings: one of `choices`, if there are
// any.
struct Constraint {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_high = false;  // value < high
  std::vector<std::string> choices;
};

inline Constraint at_least(double low) { return {.low = low, .choices = {}}; }
inline Constraint between(double low, double high) {
  return {.low = low, .high = high, .choices = {}};
}
// low <= value < high: rates.
inline Constraint rate() { return {.low = 0, .high = 1, .open_high = true, .choices = {}}; }
// Masks compare 16 random bits, which tell a rate from 1 up to about this one.
inline Constraint dropout_rate() { return between(0, 0.999); }
inline Constraint one_of(std::vector<std::string> choices) {
  return {.choices = std::move(choices)};
}

// Description of a field for people: "integer, >= 1", "one of cls, mean".
struct FieldInfo {
  std::string name, type, default_value, range, help;
};
std::string range_text(const Constraint& constraint);

template <typename T>
concept ConfigScalar = std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
    std::is_same_v<T, double> || std::is_same_v<T, std::string>;

// Reads fields out of a table and reports every key that no field has read.
class ConfigReader {
 public:
  // `section` names the table in messages ("mixer"); may be empty.
  ConfigReader(const ConfigTable& table, std::string section);

  template <ConfigScalar T>
  void operator()(const char* name, T& field, const char* /*help*/,
                  const Constraint& constraint = {}) {
    read(name, &field, constraint);
  }
  // Throws for a key that was not read.
  void finish() const;

 private:
  using Target = std::variant<bool*, int64_t*, double*, std::string*>;
  void read(const char* name, Target target, const Constraint& constraint);

  const ConfigTable& table_;
  std::string section_;
  std::vector<std::string> known_;
};

class ConfigWriter {
 public:
  template <ConfigScalar T>
  void operator()(const char* name, T& field, const char* /*help*/, const Constraint& = {}) {
    table_.set(name, ConfigValue{field, ""});
  }
  ConfigTable take() { return std::move(table_); }

 private:
  ConfigTable table_;
};

class ConfigDescriber {
 public:
  template <ConfigScalar T>
  void operator()(const char* name, T& field, const char* help, const Constraint& constraint = {}) {
    add(name, field, help, constraint);
  }
  std::vector<FieldInfo> take() { return std::move(fields_); }

 private:
  using Value = std::variant<bool, int64_t, double, std::string>;
  void add(const char* name, const Value& value, const char* help, const Constraint& constraint);
  std::vector<FieldInfo> fields_;
};

template <typename Config>
Config read_config(const ConfigTable& table, const std::string& section) {
  Config config;
  ConfigReader reader(table, section);
  config.fields(reader);
  reader.finish();
  if constexpr (requires { config.check(); }) config.check();
  return config;
}

template <typename Config>
ConfigTable write_config(Config config) {
  ConfigWriter writer;
  config.fields(writer);
  return writer.take();
}

// The table with every absent field written out, checked as it is read.
template <typename Config>
ConfigTable resolve_config(const ConfigTable& table, const std::string& section) {
  return write_config(read_config<Config>(table, section));
}

// Describes the fields, with the values of `config` as the defaults.
template <typename Config>
std::vector<FieldInfo> describe_config(Config config = {}) {
  ConfigDescriber describer;
  config.fields(describer);
  return describer.take();
}

}  // namespace lra
