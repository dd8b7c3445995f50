// Helpers of the fuzz targets. A target is a function from bytes to nothing: an lra::Error is the
// right answer to bad input; anything else that leaves it, a failed LRA_CHECK among them, is a
// crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace lra::fuzz {

// An input, taken apart from the front.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  // 0 when there is nothing left.
  uint8_t byte() {
    if (rest_.empty()) return 0;
    const uint8_t value = rest_[0];
    rest_ = rest_.subspan(1);
    return value;
  }
  // Up to `end`, which is taken away; everything when it does not occur.
  std::string_view until(char end) {
    const std::string_view all = text();
    const size_t found = all.find(end);
    rest_ = rest_.subspan(found == std::string_view::npos ? all.size() : found + 1);
    return all.substr(0, found);
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(rest_.data()), rest_.size()};
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(rest_); }

 private:
  std::span<const uint8_t> rest_;
};

// Does `parse` accept its input? An lra::Error says no; other exceptions pass.
template <typename F>
bool accepts(const F& parse) {
  try {
    parse();
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace lra::fuzz
