#include "io/config_json.h"

#include "base/text_format.h"
#include "io/struct_json.h"

namespace lra {
namespace {

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
  for (const auto& [key, value] : table) object[key] = to_json_value(value);
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
