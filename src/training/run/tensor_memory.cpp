#include "training/run/tensor_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>

#include <algorithm>
#include <mutex>

#include "base/page_arena.h"
#include "base/resources.h"

namespace lra::training {

// Counts the allocations that LibTorch's own memory profiler reports.
class TensorMemory::Counter : public c10::MemoryReportingInfoBase {
 public:
  explicit Counter(at::Device device) : device_(device) {}

  void reportMemoryUsage(void* /*block*/, int64_t bytes, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device device) override {
    if (device != device_) return;
    const std::lock_guard lock(mutex_);
    live_ += bytes;  // negative when a block is freed
    peak_ = std::max(peak_, live_);
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  const at::Device device_;
  mutable std::mutex mutex_;
  int64_t live_ = 0, peak_ = 0;
};

TensorMemory::TensorMemory(at::Device device)
    : counter_(std::make_shared<Counter>(device)),
      guard_(c10::DebugInfoKind::PROFILER_STATE, counter_) {}

int64_t TensorMemory::peak_bytes() const { return counter_->peak(); }

namespace {

// LibTorch's own allocator, except for the source of large blocks. Never destroyed: tensors of
// static objects are freed after main.
class ArenaAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* block = bytes < kLeastArenaBytes ? nullptr : arena().allocate(bytes);
    if (!block) block = c10::alloc_cpu(bytes);
    c10::profiledCPUMemoryReporter().New(block, bytes);
    return {block, block, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  static PageArena& arena() {
    static auto* const whole = new PageArena(static_cast<size_t>(total_memory_bytes()));
    return *whole;
  }

 private:
  static void release(void* block) {
    if (!block) return;
    c10::profiledCPUMemoryReporter().Delete(block);
    if (!arena().free(block)) c10::free_cpu(block);
  }
};

}  // namespace

void keep_tensors_in_arena() {
  static auto* const allocator = new ArenaAllocator;
  c10::SetCPUAllocator(allocator, 1);
}

void give_back_free_memory() {
  if (dynamic_cast<ArenaAllocator*>(c10::GetCPUAllocator())) ArenaAllocator::arena().give_back();
  malloc_trim(0);
}

}  // namespace lra::training
