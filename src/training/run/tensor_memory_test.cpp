#include "training/run/tensor_memory.h"

#include <gtest/gtest.h>

#include "ops/libtorch.h"

namespace lra::training {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

TEST(TensorMemory, CountsWhatIsAliveAtOneTime) {
  const TensorMemory memory;
  at::Tensor kept = at::empty({4 * kMegabyte}, at::kByte);
  { const at::Tensor freed = at::empty({8 * kMegabyte}, at::kByte); }
  const at::Tensor smaller = at::empty({2 * kMegabyte}, at::kByte);
  EXPECT_EQ(memory.peak_bytes(), 12 * kMegabyte);
  kept.reset();
  const at::Tensor large = at::empty({11 * kMegabyte}, at::kByte);
  EXPECT_EQ(memory.peak_bytes(), 13 * kMegabyte);
}

TEST(TensorMemory, SeesTheBackwardPass) {
  const TensorMemory memory;
  const at::Tensor x = torch::ones({kMegabyte / 4}, torch::requires_grad());
  const int64_t before = memory.peak_bytes();
  x.exp().sum().backward();
  EXPECT_GE(memory.peak_bytes(), before + 2 * kMegabyte);  // exp(x), and the gradient of x
}

TEST(TensorMemory, EndsWithItsScope) {
  const TensorMemory outer;
  { const TensorMemory inner; }
  const at::Tensor after = at::empty({kMegabyte}, at::kByte);
  EXPECT_EQ(outer.peak_bytes(), kMegabyte);
}

}  // namespace
}  // namespace lra::training
