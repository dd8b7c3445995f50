// Memory of tensors: its peak, which unlike resident memory does not depend on what the heap keeps;
// and an arena for large CPU tensors, whose pages are kept between steps.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstddef>
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

// Smaller blocks come from the C library's heap. Large ones there would be split for small objects
// that outlive them, and leave holes: half as much again as all tensors of a step.
inline constexpr size_t kLeastArenaBytes = 64 << 10;

// Makes LibTorch allocate CPU tensors from a base/page_arena.h as large as this machine's memory;
// tensors that do not fit come from the heap. Under a limit on addresses (ulimit -v) each gets half
// of them. Call this once, before the first tensor; it holds for the rest of the process.
void keep_tensors_in_arena();

// Returns unused memory of the arena and the heap to the system.
void give_back_free_memory();

}  // namespace lra::training
