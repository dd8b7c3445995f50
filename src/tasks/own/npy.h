// One array of a .npy file (numpy.lib.format).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lra::tasks {

struct NpyHeader {
  std::vector<int64_t> shape;
  uint64_t data_begin = 0, item_bytes = 0;
  int64_t size = 1;            // elements
  char kind = 0;               // as NumPy's dtype.kind: b, i, u, f, U or S
  bool is_transposed = false;  // in Fortran order

  uint64_t total_bytes() const;  // of the file
};

// Reads the header with which `content` begins. Throws lra::Error naming `name` for other formats,
// big-endian numbers, objects and other odd types.
NpyHeader read_npy_header(std::span<const std::byte> content, const std::string& name);

class NpyArray {
 public:
  // The elements must fill what follows the header.
  NpyArray(std::vector<std::byte> content, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<int64_t>& shape() const { return header_.shape; }
  int64_t size() const { return header_.size; }
  bool is_text() const { return header_.kind == 'U' || header_.kind == 'S'; }
  bool is_whole() const {
    return header_.kind == 'i' || header_.kind == 'u' || header_.kind == 'b';
  }
  // `element` counts in C order.
  double number(int64_t element) const;     // of an array that is no text
  std::string text(int64_t element) const;  // UTF-8, of an array of texts or whole numbers

 private:
  template <typename T>
  T at(int64_t element) const;
  const std::byte* address(int64_t element) const;

  std::vector<std::byte> content_;
  std::string name_;
  NpyHeader header_;
};

}  // namespace lra::tasks
