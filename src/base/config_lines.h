// Settings as text, each in one spelling.
#pragma once

#include <map>
#include <string>

#include "base/config.h"

namespace lra {

// Full names and values of all settings of a table: "train.steps" -> "5000". Equal settings give
// equal text.
std::map<std::string, std::string> setting_texts(const ConfigTable& table);

}  // namespace lra
