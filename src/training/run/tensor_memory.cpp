#include "training/run/tensor_memory.h"

#include <algorithm>
#include <mutex>

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

}  // namespace lra::training
