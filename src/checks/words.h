// The words of a text, for checks and baselines.
#pragma once

#include <cstdint>
#include <span>

namespace lra::checks {

// Calls act(hash) for each word: a run of letters, digits and bytes above ASCII, whatever its case.
template <typename Act>
void for_each_word(std::span<const uint8_t> text, const Act& act) {
  uint64_t word = 0;
  for (const uint8_t c : text) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    if (is_capital || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 128) {
      word = (word + 1 + (is_capital ? c + 32u : c)) * 0x9E3779B97F4A7C15u;
    } else if (word != 0) {
      act(word);
      word = 0;
    }
  }
  if (word != 0) act(word);
}

}  // namespace lra::checks
