// The bounds-checked reader under every binary parser.
//
// Numbers are little-endian on any machine. Every read is checked against the end; a failure is an
// lra::Error that names the file and the byte offset: "x.bin:byte 16: ...".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lra {

class ByteReader {
 public:
  // `name` is the file in messages; `base` is the offset of data[0] in that file. `data` must
  // outlive the reader and the views it returns.
  ByteReader(std::span<const std::byte> data, std::string name, uint64_t base = 0);

  // `what` names the value that is read: "number of tensors".
  uint8_t u8(const char* what) { return static_cast<uint8_t>(number(1, what)); }
  uint16_t u16(const char* what) { return static_cast<uint16_t>(number(2, what)); }
  uint32_t u32(const char* what) { return static_cast<uint32_t>(number(4, what)); }
  uint64_t u64(const char* what) { return number(8, what); }

  // The next `count` bytes, not copied.
  std::span<const std::byte> bytes(uint64_t count, const char* what);
  std::string_view text(uint64_t count, const char* what);
  void skip(uint64_t count, const char* what) { bytes(count, what); }

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return data_.size() - position_; }
  bool at_end() const { return position_ == data_.size(); }
  // Throws when bytes are left.
  void expect_end();

  // Throws lra::Error at the current offset: "x.bin:byte 16: <what>; expected <expected>".
  [[noreturn]] void fail(const std::string& what, const std::string& expected = "") const;

 private:
  uint64_t number(int size, const char* what);

  std::span<const std::byte> data_;
  std::string name_;
  uint64_t base_, position_ = 0;
};

}  // namespace lra
