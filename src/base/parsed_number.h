// Numbers that are all of a text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace lra {

// The number, whole or not as T is; nothing if the text is none, has more than one, or is too large
// for T. No sign but a minus, no white space.
template <typename T>
std::optional<T> parsed_number(std::string_view text) {
  T number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = problem == std::errc() && end == text.data() + text.size();
  return is_number ? std::optional(number) : std::nullopt;
}

}  // namespace lra
