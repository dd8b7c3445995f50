#include "io/byte_reader.h"

#include "base/error.h"

namespace lra {

ByteReader::ByteReader(std::span<const std::byte> data, std::string name, uint64_t base)
    : data_(data), name_(std::move(name)), base_(base) {}

void ByteReader::fail(const std::string& what, const std::string& expected) const {
  throw Error({.where = name_ + ":byte " + std::to_string(base_ + position_),
               .what = what,
               .expected = expected});
}

std::span<const std::byte> ByteReader::bytes(uint64_t count, const char* what) {
  if (count > remaining()) {
    fail(std::string(what) + ": the file ends too early, " + std::to_string(remaining()) +
             " bytes are left",
         std::to_string(count) + " bytes");
  }
  const auto part = data_.subspan(position_, count);
  position_ += count;
  return part;
}

std::string_view ByteReader::text(uint64_t count, const char* what) {
  const auto part = bytes(count, what);
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

uint64_t ByteReader::number(int size, const char* what) {
  const auto part = bytes(static_cast<uint64_t>(size), what);
  uint64_t value = 0;
  for (int i = size; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(part[i]);
  return value;
}

void ByteReader::expect_end() {
  if (!at_end()) fail(std::to_string(remaining()) + " bytes too many", "the end of the file");
}

}  // namespace lra
