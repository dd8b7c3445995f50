#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include "ops/libtorch.h"
#include "training/run/tensor_memory.h"

namespace lra::training {
namespace {

class InArena : public ::testing::Test {
 protected:
  InArena() { keep_tensors_in_arena(); }
  ~InArena() override { c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 1); }
};

constexpr int64_t kLarge = kLeastArenaBytes, kPage = 4096;

char* place(const at::Tensor& t) { return static_cast<char*>(t.data_ptr()); }

TEST_F(InArena, LargeTensorsLieSideBySideAndAreFoundAgain) {
  at::Tensor first = at::empty({8 * kLarge}, at::kByte);
  char* const start = place(first);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(start) % kPage, 0u);
  const at::Tensor second = at::empty({kLarge + 1}, at::kByte);
  EXPECT_EQ(place(second), start + 8 * kLarge);
  first.reset();
  const at::Tensor small = at::empty({kLarge - 1}, at::kByte);  // does not split the free part
  EXPECT_EQ(place(at::empty({8 * kLarge}, at::kByte)), start);
  EXPECT_TRUE(place(small) < start || place(small) > place(second));
}

TEST_F(InArena, TensorsStillCount) {
  const TensorMemory memory;
  const at::Tensor large = at::empty({3 * kLarge}, at::kByte);
  { const at::Tensor freed = at::empty({kLarge / 2}, at::kByte); }
  const at::Tensor more = at::empty({kLarge}, at::kByte);
  EXPECT_EQ(memory.peak_bytes(), 4 * kLarge);
}

TEST_F(InArena, TakesTensorsOfEverySize) {
  EXPECT_EQ(at::empty({0}).numel(), 0);
  const at::Tensor grown = at::zeros({4}, at::kByte).resize_({5 * kLarge});
  EXPECT_EQ(grown[2].item<int>(), 0);
  const at::Tensor outlives = at::ones({kLarge});
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 1);
  EXPECT_EQ(outlives.sum().item<float>(), kLarge);
}

TEST_F(InArena, WhatCannotFitIsRefusedAsByLibTorch) {
  EXPECT_THROW(at::empty({int64_t{1} << 50}, at::kByte), c10::Error);
}

TEST_F(InArena, FreeMemoryGoesBack) {
  char* place_before = nullptr;
  {
    const at::Tensor marked = at::ones({64 * kLarge}, at::kByte);
    place_before = place(marked);
  }
  give_back_free_memory();
  const at::Tensor again = at::empty({64 * kLarge}, at::kByte);
  ASSERT_EQ(place(again), place_before);
  EXPECT_EQ(again.sum().item<int64_t>(), 0);
}

}  // namespace
}  // namespace lra::training
