// What tells runs apart: a hash of all settings, and one of everything that decides the result.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace lra {

// 32 hexadecimal digits each.
std::string config_hash(const ConfigTable& resolved);
std::string run_fingerprint(const std::string& config_hash, const std::string& data_hash,
                            int64_t task_version);

}  // namespace lra
