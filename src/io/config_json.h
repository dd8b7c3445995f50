// Settings, a TOML table, as nested JSON and back.
#pragma once

#include <string>

#include "base/config.h"
#include "io/json.h"

namespace lra {

Json config_to_json(const ConfigTable& table);

// `where` names the object in messages. Throws lra::Error for a value that no setting can have.
ConfigTable config_from_json(const Json& object, const std::string& where);

}  // namespace lra
