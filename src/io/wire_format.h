// Protocol buffers' wire format, writing only: a field is its tag (number << 3 | type) and a value,
// a message the fields one after another. A handful of messages does not justify a dependency.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lra::wire {

enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

template <typename T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

inline void put_tag(std::string& out, uint32_t field, Type type) {
  put_varint(out, field << 3 | type);
}

inline void put_integer(std::string& out, uint32_t field, int64_t value) {
  put_tag(out, field, kVarint);
  put_varint(out, static_cast<uint64_t>(value));
}

inline void put_double(std::string& out, uint32_t field, double value) {
  put_tag(out, field, kFixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(value));
}

inline void put_float(std::string& out, uint32_t field, float value) {
  put_tag(out, field, kFixed32);
  put_little_endian(out, std::bit_cast<uint32_t>(value));
}

// Strings and messages inside messages.
inline void put_bytes(std::string& out, uint32_t field, std::string_view value) {
  put_tag(out, field, kLengthDelimited);
  put_varint(out, value.size());
  out += value;
}

// A repeated double, packed.
inline void put_doubles(std::string& out, uint32_t field, std::span<const double> values) {
  put_tag(out, field, kLengthDelimited);
  put_varint(out, 8 * values.size());
  for (const double value : values) put_little_endian(out, std::bit_cast<uint64_t>(value));
}

// A message that holds one field, a string or message.
inline std::string message(uint32_t field, std::string_view content) {
  std::string out;
  put_bytes(out, field, content);
  return out;
}

}  // namespace lra::wire
