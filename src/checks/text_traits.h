// Traits of a text that have to do with how it was written down, not with what it says.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace lra::checks {

struct TextTrait {
  const char* what;    // "90 % of the texts of train ..."
  double most;         // share of texts above which data is suspect
  bool tells_classes;  // suspect if one class has it and another does not
  bool (*has)(std::string_view text);
};

inline constexpr size_t kNumTextTraits = 8;
extern const std::array<TextTrait, kNumTextTraits> kTextTraits;

}  // namespace lra::checks
