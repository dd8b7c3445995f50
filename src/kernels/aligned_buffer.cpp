#include "kernels/aligned_buffer.h"

#include <new>

namespace lra::kernels {
namespace {
constexpr std::align_val_t kCacheLine{64};
}

void AlignedBuffer::Free::operator()(float* data) const { ::operator delete[](data, kCacheLine); }

float* AlignedBuffer::reserve(int64_t count) {
  if (count > capacity_) {
    capacity_ = 0;
    data_.reset();
    data_.reset(static_cast<float*>(
        ::operator new[](static_cast<size_t>(count) * sizeof(float), kCacheLine)));
    capacity_ = count;
  }
  return data_.get();
}

}  // namespace lra::kernels
