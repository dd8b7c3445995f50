// Scratch memory of floats that starts on a cache line and is kept between calls.
#pragma once

#include <cstdint>
#include <memory>

namespace lra::kernels {

class AlignedBuffer {
 public:
  // Returns at least `count` floats, in the memory of the last call if it is large enough. The
  // contents are unspecified.
  float* reserve(int64_t count);

 private:
  struct Free {
    void operator()(float* data) const;
  };
  std::unique_ptr<float[], Free> data_;
  int64_t capacity_ = 0;
};

}  // namespace lra::kernels
