// The peak of bytes held by tensors. Unlike resident memory, it does not depend on memory that the
// heap keeps.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace lra::training {

// Counts the tensors of one device that this thread, and the backward passes it starts, allocate
// from the construction on, until they are freed. Buffers that kernels and libraries keep for
// themselves are not counted.
class TensorMemory {
 public:
  explicit TensorMemory(at::Device device = at::kCPU);

  int64_t peak_bytes() const;

 private:
  class Counter;
  std::shared_ptr<Counter> counter_;
  c10::DebugInfoGuard guard_;
};

}  // namespace lra::training
