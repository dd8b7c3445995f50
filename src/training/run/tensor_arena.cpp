#include "training/run/tensor_arena.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>

#include "base/page_arena.h"
#include "base/resources.h"

namespace lra::training {
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
