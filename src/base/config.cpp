#include "base/config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/other_names.h"

namespace lra {
namespace {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string bound_text(double value) {
  const std::string text = number_text(value);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      constexpr char kHex[] = "0123456789ABCDEF";
      out += "\\u00";
      out += kHex[(c >> 4) & 0xF];
      out += kHex[c & 0xF];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string key_text(const std::string& key) { return is_bare_key(key) ? key : toml_string(key); }

struct ValueText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return number_text(v); }
  std::string operator()(const std::string& v) const { return toml_string(v); }
  std::string operator()(const ConfigList& v) const {
    std::string text = "[";
    for (const ConfigValue& item : v) text += (text.size() > 1 ? ", " : "") + setting_text(item);
    return text + "]";
  }
  std::string operator()(const ConfigTable& v) const {
    std::string text = "{";
    for (const auto& [key, item] : v) {
      text += (text.size() > 1 ? ", " : " ") + key_text(key) + " = " + setting_text(item);
    }
    return text + (v.empty() ? "}" : " }");
  }
};

void write_toml(const ConfigTable& table, const std::string& prefix, std::string& out) {
  for (const auto& [key, value] : table) {
    if (!value.as_table()) out += key_text(key) + " = " + setting_text(value) + "\n";
  }
  for (const auto& [key, value] : table) {
    if (const ConfigTable* inner = value.as_table()) {
      const std::string name = prefix.empty() ? key_text(key) : prefix + "." + key_text(key);
      out += std::string(out.empty() ? "" : "\n") + "[" + name + "]\n";
      write_toml(*inner, name, out);
    }
  }
}

void add_texts(const ConfigTable& table, const std::string& prefix,
               std::map<std::string, std::string>& texts) {
  for (const auto& [key, value] : table) {
    if (const ConfigTable* inner = value.as_table()) {
      add_texts(*inner, prefix + key + ".", texts);
    } else {
      texts.emplace(prefix + key, setting_text(value));
    }
  }
}

const char* type_name(const ConfigValue& value) {
  static constexpr const char* kNames[] = {"true/false", "an integer", "a number",
                                           "a string",   "a list",     "a table"};
  return kNames[value.value.index()];
}

}  // namespace

bool is_bare_key(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
}

ConfigValue* ConfigTable::find(std::string_view key) {
  for (auto& [name, value] : entries_) {
    if (name == key) return &value;
  }
  return nullptr;
}

const ConfigValue* ConfigTable::find(std::string_view key) const {
  return const_cast<ConfigTable*>(this)->find(key);
}

void ConfigTable::set(const std::string& key, ConfigValue value) {
  if (ConfigValue* old = find(key)) {
    *old = std::move(value);
  } else {
    entries_.push_back({key, std::move(value)});
  }
}

void ConfigTable::erase(std::string_view key) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.key == key; });
}

ConfigTable& ConfigTable::table(const std::string& key) {
  if (!find(key)) set(key, ConfigValue{ConfigTable{}, ""});
  ConfigValue* found = find(key);
  if (!found->as_table()) {
    throw Error({.where = found->where,
                 .what = "'" + key + "' is " + type_name(*found),
                 .expected = "a table [" + key + "]"});
  }
  return *found->as_table();
}

std::string number_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

std::string to_toml(const ConfigTable& table) {
  std::string out;
  write_toml(table, "", out);
  return out;
}

void merge(ConfigTable& base, const ConfigTable& over) {
  for (const auto& [key, value] : over) {
    ConfigValue* old = base.find(key);
    if (old && old->as_table() && value.as_table()) {
      merge(*old->as_table(), *value.as_table());
    } else {
      base.set(key, value);
    }
  }
}

std::string setting_text(const ConfigValue& value) { return std::visit(ValueText{}, value.value); }

std::map<std::string, std::string> setting_texts(const ConfigTable& table) {
  std::map<std::string, std::string> texts;
  add_texts(table, "", texts);
  return texts;
}

// Whole lines are sorted, '=' with them: fingerprints are hashes of this text.
std::string canonical_text(const ConfigTable& table) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : setting_texts(table)) lines.push_back(name + "=" + value + "\n");
  std::sort(lines.begin(), lines.end());
  return std::accumulate(lines.begin(), lines.end(), std::string());
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  const std::string own = own_name(std::string(name));
  const auto same = std::ranges::find_if(
      known, [&](const std::string& candidate) { return is_same_name(candidate, own); });
  if (same != known.end()) return *same;
  std::string best;
  int best_distance = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest_name(name, known);
  return near.empty() ? "known: " + join(known) : "did you mean '" + near + "'?";
}

std::string range_text(const Constraint& constraint) {
  if (!constraint.choices.empty()) return "one of " + join(constraint.choices);
  std::string text;
  if (std::isfinite(constraint.low)) text = ">= " + bound_text(constraint.low);
  if (std::isfinite(constraint.high)) {
    text += (text.empty() ? "" : ", ") + std::string(constraint.open_high ? "< " : "<= ") +
            bound_text(constraint.high);
  }
  return text;
}

ConfigReader::ConfigReader(const ConfigTable& table, std::string section)
    : table_(table), section_(std::move(section)) {}

void ConfigReader::read(const char* name, Target target, const Constraint& constraint) {
  known_.push_back(name);
  const ConfigValue* found = table_.find(name);
  if (!found) return;
  const std::string full = section_.empty() ? name : section_ + "." + name;
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw Error({.where = found->where, .what = full + what, .expected = expected});
  };
  const auto check_range = [&](double number) {
    const bool high_ok =
        constraint.open_high ? number < constraint.high : number <= constraint.high;
    if (!(number >= constraint.low && high_ok)) {
      refuse(" is " + setting_text(*found), range_text(constraint));
    }
  };
  if (auto** flag = std::get_if<bool*>(&target)) {
    if (const bool* v = std::get_if<bool>(&found->value)) return void(**flag = *v);
    refuse(std::string(" is ") + type_name(*found), "true or false");
  } else if (auto** integer = std::get_if<int64_t*>(&target)) {
    const int64_t* v = std::get_if<int64_t>(&found->value);
    if (!v) refuse(std::string(" is ") + type_name(*found), "an integer");
    check_range(static_cast<double>(*v));
    **integer = *v;
  } else if (auto** number = std::get_if<double*>(&target)) {
    const double* v = std::get_if<double>(&found->value);
    const int64_t* i = std::get_if<int64_t>(&found->value);
    if (!v && !i) refuse(std::string(" is ") + type_name(*found), "a number");
    const double value = v ? *v : static_cast<double>(*i);
    check_range(value);
    if (!std::isfinite(value)) refuse(" is " + setting_text(*found), "a finite number");
    **number = value;
  } else {
    const auto& choices = constraint.choices;
    // A name may consist of digits.
    if (const int64_t* i = std::get_if<int64_t>(&found->value); i && choices.empty()) {
      return void(*std::get<std::string*>(target) = std::to_string(*i));
    }
    const std::string* v = std::get_if<std::string>(&found->value);
    if (!v) refuse(std::string(" is ") + type_name(*found), "a string");
    if (!choices.empty() && std::find(choices.begin(), choices.end(), *v) == choices.end()) {
      refuse(" is '" + *v + "'", range_text(constraint));
    }
    *std::get<std::string*>(target) = *v;
  }
}

void ConfigReader::finish() const {
  const auto full = [&](const std::string& key) {
    return section_.empty() ? key : section_ + "." + key;
  };
  for (const auto& [key, value] : table_) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::string advice = "there are no settings here";
    if (const std::string near = nearest_name(key, known_); !near.empty()) {
      advice = "did you mean '" + full(near) + "'?";
    } else if (!known_.empty()) {
      advice = suggestion(key, known_);
    }
    throw Error(
        {.where = value.where, .what = "unknown key '" + full(key) + "'", .advice = advice});
  }
}

void ConfigDescriber::add(const char* name, const Value& value, const char* help,
                          const Constraint& constraint) {
  static constexpr const char* kTypes[] = {"true/false", "integer", "number", "string"};
  const ConfigValue as_value{
      std::visit([](const auto& v) { return decltype(ConfigValue::value)(v); }, value), ""};
  fields_.push_back(
      {name, kTypes[value.index()], setting_text(as_value), range_text(constraint), help});
}

}  // namespace lra
