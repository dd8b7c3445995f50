// Tells whether a text is UTF-8, and where its characters begin.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lra {

// Strict (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
inline bool is_utf8(std::span<const uint8_t> text) {
  for (size_t i = 0; i < text.size();) {
    const uint8_t lead = text[i++];
    if (lead < 0x80) continue;
    if (lead < 0xC2 || lead > 0xF4) return false;
    const size_t num_more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    if (text.size() - i < num_more) return false;
    // The second byte is the one that tells overlong, surrogate and too large code points.
    const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (text[i] < low || text[i] > high) return false;
    for (size_t k = 1; k < num_more; ++k) {
      if (text[i + k] < 0x80 || text[i + k] > 0xBF) return false;
    }
    i += num_more;
  }
  return true;
}
inline bool is_utf8(std::string_view text) {
  return is_utf8({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// True for the first byte of a character, false for those that continue it.
inline bool begins_character(uint8_t byte) { return (byte & 0xC0) != 0x80; }

}  // namespace lra
