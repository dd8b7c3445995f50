// JSON behind nlohmann::ordered_json, hardened for files that strangers hand us.
//
// parse_json limits size and depth, refuses duplicate keys (nlohmann keeps the last one silently)
// and names the file in every error. JsonFields reads one object field by field with errors that
// name the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lra {

// Objects keep the order of their keys.
using Json = nlohmann::ordered_json;

struct JsonLimits {
  size_t max_bytes = size_t{256} << 20;
  int max_depth = 64;          // nesting of arrays and objects
  size_t max_keys = SIZE_MAX;  // of one object; looking fields up is linear in it
};

// The document in `text`, called `name` in messages. Throws lra::Error for text that is not JSON,
// is not UTF-8, nests too deep, is too large, has too many keys or repeats one within an object.
Json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits = {});
Json read_json_file(const std::string& path, const JsonLimits& limits = {});

// JSON text; bytes that are not UTF-8 become U+FFFD. indent < 0: one line.
std::string json_text(const Json& value, int indent = -1);

// JSON has no NaN or infinity: they are written as the strings "nan", "inf" and "-inf", which
// JsonFields reads back as doubles.
Json json_number(double value);

// The fields of one JSON object. Messages read "name: field 'a.b' is a string; expected a number".
// The object must outlive the reader.
class JsonFields {
 public:
  // Throws when `object` is not an object. `section` is the path of the object in its document.
  JsonFields(const Json& object, std::string name, std::string section = "");

  // T: bool, int64_t, uint64_t, double, std::string, std::vector<std::string>. An integer that
  // does not fit T is an error; a double takes any number. get throws when the field is absent,
  // find returns nothing then, or when it is null.
  template <typename T>
  T get(const char* key);
  template <typename T>
  std::optional<T> find(const char* key);

  // A nested object or array.
  JsonFields object(const char* key);
  std::optional<JsonFields> find_object(const char* key);
  const Json& array(const char* key);

  // Throws if the object has a field that was never read.
  void finish() const;

  const Json& json() const { return object_; }
  const std::string& name() const { return name_; }
  std::string path_of(const std::string& key) const;
  // Throws lra::Error naming the document and the field.
  [[noreturn]] void fail(const std::string& key, const std::string& what,
                         const std::string& expected) const;

 private:
  const Json* look_up(const char* key);
  const Json& require(const char* key, const char* expected);
  template <typename T>
  T convert(const char* key, const Json& value) const;

  const Json& object_;
  std::string name_, section_;
  std::vector<std::string> known_;
};

// "a string", "a number", "an object" ...: the type of `value` for messages.
std::string json_type_name(const Json& value);

}  // namespace lra
