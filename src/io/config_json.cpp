#include "io/config_json.h"

#include "base/text_format.h"

namespace lra {
namespace {

Json value_to_json(const ConfigValue& value) {
  if (const double* number = std::get_if<double>(&value.value)) return json_number(*number);
  if (const ConfigTable* table = value.as_table()) return config_to_json(*table);
  if (const ConfigList* list = std::get_if<ConfigList>(&value.value)) {
    Json array = Json::array();
    for (const ConfigValue& item : *list) array.push_back(value_to_json(item));
    return array;
  }
  if (const bool* flag = std::get_if<bool>(&value.value)) return *flag;
  if (const int64_t* integer = std::get_if<int64_t>(&value.value)) return *integer;
  return std::get<std::string>(value.value);
}

// No setting is called "inf" or "nan", so these strings are the numbers json_number wrote.
ConfigValue value_from_json(const Json& json, const std::string& where) {
  const Json wrapped = {{"value", json}};
  JsonFields fields(wrapped, where);
  if (json.is_object()) return {config_from_json(json, where), where};
  if (json.is_array()) {
    ConfigList list;
    for (const Json& item : json) list.push_back(value_from_json(item, where));
    return {std::move(list), where};
  }
  if (json.is_boolean()) return {json.get<bool>(), where};
  if (json.is_number_integer()) return {fields.get<int64_t>("value"), where};
  if (json.is_number() || json == "inf" || json == "-inf" || json == "nan") {
    return {fields.get<double>("value"), where};
  }
  return {fields.get<std::string>("value"), where};
}

}  // namespace

Json config_to_json(const ConfigTable& table) {
  Json object = Json::object();
  for (const auto& [key, value] : table) object[key] = value_to_json(value);
  return object;
}

ConfigTable config_from_json(const Json& object, const std::string& where) {
  ConfigTable table;
  for (const auto& [key, value] : object.items()) {
    table.set(key, value_from_json(value, where + "." + printable(key)));
  }
  return table;
}

}  // namespace lra
