// One array of a .npy file (numpy.lib.format), in C order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lra::tasks {

class NpyArray {
 public:
  // Reads the header of `content`; its elements must fill the rest. Throws lra::Error naming `name`
  // for other formats, big-endian numbers, Fortran order, objects and other odd types.
  NpyArray(std::vector<std::byte> content, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t size() const { return size_; }  // elements
  bool is_text() const { return kind_ == 'U' || kind_ == 'S'; }
  bool is_whole() const { return kind_ == 'i' || kind_ == 'u' || kind_ == 'b'; }
  double number(int64_t element) const;     // of an array that is no text
  std::string text(int64_t element) const;  // UTF-8, of an array of texts or whole numbers

 private:
  template <typename T>
  T at(int64_t element) const;

  std::vector<std::byte> content_;
  std::string name_;
  std::vector<int64_t> shape_;
  size_t data_begin_ = 0, item_bytes_ = 0;
  int64_t size_ = 1;
  char kind_ = 0;  // as NumPy's dtype.kind: b, i, u, f, U or S
};

}  // namespace lra::tasks
