#include "io/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/config.h"
#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

constexpr size_t kMaxQuoted = 200;  // characters of foreign text in a message

// Builds the document from parser events: the parser keeps its own stack on the heap, so hostile
// nesting costs memory in proportion to the text and stops at the limit. Objects are filled behind
// nlohmann's back, because its ordered map looks every new key up by a linear search: 100,000 keys
// would cost 5e9 comparisons.
class DocumentBuilder : public nlohmann::json_sax<Json> {
 public:
  DocumentBuilder(const std::string& name, const JsonLimits& limits)
      : name_(name), limits_(limits) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    Level& level = levels_.back();
    if (!level.keys.insert(value).second) {
      refuse("key " + in_quotes(value, kMaxQuoted) + " appears twice in one object");
    }
    if (level.keys.size() > limits_.max_keys) {
      refuse("more than " + std::to_string(limits_.max_keys) + " keys in one object");
    }
    level.key = std::move(value);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception& problem) override {
    // The library's messages begin with "[json.exception.parse_error.101] ".
    const std::string text = problem.what();
    const size_t end = text.find("] ");
    refuse("not valid JSON at byte " + std::to_string(position) + ": " +
           printable(text.substr(end == std::string::npos ? 0 : end + 2, kMaxQuoted)));
  }

  Json take() { return std::move(root_); }

 private:
  struct Level {
    Json* container;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error({.where = name_, .what = what});
  }

  Json* place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (auto* list = level.container->get_ptr<Json::array_t*>()) {
      return &list->emplace_back(std::move(value));
    }
    auto& object = level.container->get_ref<Json::object_t&>();
    return &object.emplace_back(std::move(level.key), std::move(value)).second;
  }

  bool put(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (static_cast<int>(levels_.size()) >= limits_.max_depth) {
      refuse("nested deeper than " + std::to_string(limits_.max_depth) + " levels");
    }
    levels_.push_back({place(std::move(container)), "", {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  const std::string& name_;
  const JsonLimits& limits_;
  Json root_;
  std::vector<Level> levels_;
};

// The name of a field of type T in messages.
template <typename T>
constexpr const char* kExpected = "";
template <>
constexpr const char* kExpected<bool> = "true or false";
template <>
constexpr const char* kExpected<int64_t> = "an integer of 64 bits";
template <>
constexpr const char* kExpected<uint64_t> = "an integer >= 0 of 64 bits";
template <>
constexpr const char* kExpected<double> = "a number";
template <>
constexpr const char* kExpected<std::string> = "a string";
template <>
constexpr const char* kExpected<std::vector<std::string>> = "an array of strings";

std::optional<bool> as(const Json& value, bool*) {
  return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

std::optional<int64_t> as(const Json& value, int64_t*) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return {};
    return static_cast<int64_t>(number);
  }
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

std::optional<uint64_t> as(const Json& value, uint64_t*) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  // Values built in memory, not parsed, may be signed.
  if (value.is_number_integer() && value.get<int64_t>() >= 0) return value.get<uint64_t>();
  return {};
}

std::optional<double> as(const Json& value, double*) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return {};
}

std::optional<std::string> as(const Json& value, std::string*) {
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

std::optional<std::vector<std::string>> as(const Json& value, std::vector<std::string>*) {
  if (!value.is_array()) return {};
  std::vector<std::string> list;
  for (const Json& item : value) {
    if (!item.is_string()) return {};
    list.push_back(item.get<std::string>());
  }
  return list;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw Error({.where = name,
                 .what = "JSON of " + human_bytes(text.size()),
                 .expected = "at most " + human_bytes(limits.max_bytes)});
  }
  // The parser takes a zero byte for the end of the text and would ignore the rest.
  if (text.find('\0') != std::string_view::npos) {
    throw Error({.where = name, .what = "not valid JSON: a zero byte"});
  }
  DocumentBuilder builder(name, limits);
  Json::sax_parse(text, &builder);
  return builder.take();
}

Json read_json_file(const std::string& path, const JsonLimits& limits) {
  return parse_json(read_file(path, limits.max_bytes), path, limits);
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json json_number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

std::string json_type_name(const Json& value) {
  // In the order of Json::value_t.
  static constexpr const char* kNames[] = {"null",          "an object",  "an array",   "a string",
                                           "true or false", "an integer", "an integer", "a number",
                                           "binary data",   "binary data"};
  return kNames[static_cast<size_t>(value.type())];
}

JsonFields::JsonFields(const Json& object, std::string name, std::string section)
    : object_(object), name_(std::move(name)), section_(std::move(section)) {
  if (object_.is_object()) return;
  const std::string field = section_.empty() ? "" : "field '" + section_ + "' is ";
  throw Error({.where = name_, .what = field + json_type_name(object_), .expected = "an object"});
}

std::string JsonFields::path_of(const std::string& key) const {
  return section_.empty() ? key : section_ + "." + key;
}

void JsonFields::fail(const std::string& key, const std::string& what,
                      const std::string& expected) const {
  throw Error(
      {.where = name_, .what = "field '" + path_of(key) + "' " + what, .expected = expected});
}

const Json* JsonFields::look_up(const char* key) {
  known_.emplace_back(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

const Json& JsonFields::require(const char* key, const char* expected) {
  const Json* value = look_up(key);
  if (!value) fail(key, "is missing", expected);
  return *value;
}

template <typename T>
T JsonFields::convert(const char* key, const Json& value) const {
  std::optional<T> converted = as(value, static_cast<T*>(nullptr));
  if (!converted) {
    const bool too_large = value.is_number_integer() && std::is_integral_v<T>;
    fail(key, "is " + (too_large ? json_text(value) : json_type_name(value)), kExpected<T>);
  }
  return std::move(*converted);
}

template <typename T>
T JsonFields::get(const char* key) {
  return convert<T>(key, require(key, kExpected<T>));
}

template <typename T>
std::optional<T> JsonFields::find(const char* key) {
  const Json* value = look_up(key);
  if (!value || value->is_null()) return {};
  return convert<T>(key, *value);
}

#define LRA_JSON_FIELD_TYPE(T)                \
  template T JsonFields::get<T>(const char*); \
  template std::optional<T> JsonFields::find<T>(const char*);
LRA_JSON_FIELD_TYPE(bool)
LRA_JSON_FIELD_TYPE(int64_t)
LRA_JSON_FIELD_TYPE(uint64_t)
LRA_JSON_FIELD_TYPE(double)
LRA_JSON_FIELD_TYPE(std::string)
LRA_JSON_FIELD_TYPE(std::vector<std::string>)
#undef LRA_JSON_FIELD_TYPE

JsonFields JsonFields::object(const char* key) {
  return JsonFields(require(key, "an object"), name_, path_of(key));
}

std::optional<JsonFields> JsonFields::find_object(const char* key) {
  const Json* value = look_up(key);
  if (!value || value->is_null()) return {};
  return JsonFields(*value, name_, path_of(key));
}

const Json& JsonFields::array(const char* key) {
  const Json& value = require(key, "an array");
  if (!value.is_array()) fail(key, "is " + json_type_name(value), "an array");
  return value;
}

void JsonFields::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    throw Error({.where = name_,
                 .what = "unknown field '" + printable(path_of(key.substr(0, kMaxQuoted))) + "'",
                 .advice = suggestion(key.substr(0, kMaxQuoted), known_)});
  }
}

}  // namespace lra
