// Structs as JSON and back, from one list of members each, so that neither direction can forget
// one.
//
//   LRA_FIELDS(SplitSizes, train, val, test)
//
// in namespace lra makes the members of a struct the fields of a JSON object, in this order.
// Members: bool, integers, double (NaN and infinity included), strings, settings, other such
// structs, JSON arrays, std::optional (absent: no field), std::vector, std::map by name, a vector
// of pairs as a map in its own order, and enumerations that have a function names_of(Enum). Reading
// is strict: a missing, ill-typed or unknown field is an lra::Error.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text_format.h"
#include "io/config_json.h"
#include "io/json.h"

#define LRA_FIELD(name) f(#name, value.name);
// Members within a function of more than these: void fields(auto& f, Struct& value).
#define LRA_MEMBERS(...) NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(LRA_FIELD, __VA_ARGS__))
#define LRA_FIELDS(Struct, ...) \
  void fields(auto& f, Struct& value) { LRA_MEMBERS(__VA_ARGS__) }

namespace lra {

class StructWriter {
 public:
  template <typename T>
  void operator()(const char* key, T& value) {
    out_[key] = to_json_value(value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (value) out_[key] = to_json_value(*value);
  }
  Json take() { return std::move(out_); }

  template <typename T>
  static Json to_json_value(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return names_of(value).at(static_cast<size_t>(value));
    } else if constexpr (requires(StructWriter w, T v) { fields(w, v); }) {
      StructWriter writer;
      T copy = value;  // the lists of fields are shared with the reader
      fields(writer, copy);
      return writer.take();
    } else {
      return value;
    }
  }
  static Json to_json_value(double value) { return json_number(value); }
  static Json to_json_value(const ConfigTable& value) { return config_to_json(value); }
  static Json to_json_value(const ConfigValue& value) {
    return std::visit([](const auto& v) { return to_json_value(v); }, value.value);
  }
  template <typename T>
  static Json to_json_value(const std::vector<T>& list) {
    Json array = Json::array();
    for (const T& item : list) array.push_back(to_json_value(item));
    return array;
  }
  template <typename T>
  static Json to_json_value(const std::map<std::string, T>& map) {
    Json object = Json::object();
    for (const auto& [name, value] : map) object[name] = to_json_value(value);
    return object;
  }

  template <typename T>
  static Json to_json_value(const std::vector<std::pair<std::string, T>>& list) {
    Json object = Json::object();
    for (const auto& [name, value] : list) object[name] = to_json_value(value);
    return object;
  }

 private:
  Json out_ = Json::object();
};

class StructReader {
 public:
  explicit StructReader(JsonFields& in) : in_(in) {}
  template <typename T>
  void operator()(const char* key, T& value) {
    take(key, value);
  }
  template <typename T>
  static void from_object(JsonFields in, T& value) {
    StructReader reader(in);
    fields(reader, value);
    in.finish();
  }

 private:
  template <typename T>
  static constexpr bool kIsStruct = requires(StructReader r, T& v) {
    fields(r, v);
  };

  template <typename T>
  void take(const char* key, T& value) {
    if constexpr (kIsStruct<T>) {
      from_object(in_.object(key), value);
    } else if constexpr (std::is_enum_v<T>) {
      take_choice(key, value);
    } else {
      value = in_.get<T>(key);
    }
  }
  template <typename Enum>
  void take_choice(const char* key, Enum& value) {
    const auto text = in_.get<std::string>(key);
    const auto& names = names_of(value);
    std::string list;
    for (size_t i = 0; i < names.size(); ++i) {
      if (text == names[i]) return void(value = static_cast<Enum>(i));
      list += std::string(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
    }
    in_.fail(key, "is '" + printable(text.substr(0, 100)) + "'", list);
  }
  void take(const char* key, Json& list) { list = in_.array(key); }
  void take(const char* key, ConfigTable& value) {
    value = config_from_json(in_.object(key).json(), in_.name() + ":" + in_.path_of(key));
  }
  template <typename T>
  void take(const char* key, std::optional<T>& value) {
    if constexpr (kIsStruct<T>) {
      if (auto inner = in_.find_object(key)) from_object(std::move(*inner), value.emplace());
    } else {
      value = in_.find<T>(key);
    }
  }
  template <typename T>
  void take(const char* key, std::vector<T>& list) {
    take_items(in_.array(key), in_.path_of(key), list);
  }
  template <typename T>
  requires kIsStruct<T>
  void take(const char* key, std::optional<std::vector<T>>& list) {
    if (in_.json().contains(key)) take(key, list.emplace());
  }
  template <typename T>
  void take(const char* key, std::map<std::string, T>& map) {
    JsonFields inner = in_.object(key);
    StructReader reader(inner);
    for (const auto& [name, unused] : inner.json().items()) reader(name.c_str(), map[name]);
  }
  template <typename T>
  void take(const char* key, std::vector<std::pair<std::string, T>>& list) {
    JsonFields inner = in_.object(key);
    StructReader reader(inner);
    for (const auto& [name, unused] : inner.json().items()) {
      list.emplace_back(name, T());
      reader(name.c_str(), list.back().second);
    }
  }

  template <typename T>
  void take_items(const Json& array, const std::string& path, std::vector<T>& list) {
    for (size_t i = 0; i < array.size(); ++i) {
      const std::string place = path + "[" + std::to_string(i) + "]";
      if constexpr (kIsStruct<T>) {
        from_object(JsonFields(array[i], in_.name(), place), list.emplace_back());
      } else {
        const Json wrapped = {{place, array[i]}};
        JsonFields item(wrapped, in_.name());
        StructReader(item).take(place.c_str(), list.emplace_back());
      }
    }
  }

  JsonFields& in_;
};

// The JSON of a struct, or of a list or map of structs.
template <typename T>
Json to_json_value(const T& value) {
  return StructWriter::to_json_value(value);
}

// Fields of `in` that were read before are left out.
template <typename T>
void struct_from_json(const JsonFields& in, T& value) {
  StructReader::from_object(in, value);
}

}  // namespace lra
