// Counts with their noun.
#pragma once

#include <cstdint>
#include <string>

#include "base/text_format.h"

namespace lra {

// "1 step", "25,000 steps": `noun` is the singular of one that takes an s.
inline std::string counted(int64_t count, const std::string& noun) {
  return thousands(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace lra
