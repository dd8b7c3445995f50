#include "stand_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/attention/attention.h"
#include "ops/libtorch.h"
#include "ops/linear.h"

namespace lra {
namespace {

using at::Tensor;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& compute) {
  try {
    compute();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(StandIn, ComputesWhatTheCpuDoes) {
  const Tensor x = at::arange(12, at::kFloat).view({3, 4}), w = x.t().contiguous() - 5;
  const int64_t before = stand_in_calls();
  const Tensor y = (x.to(stand_in()).mm(w.to(stand_in())) + 1).narrow(0, 1, 2).t();
  EXPECT_EQ(y.device(), stand_in());
  EXPECT_TRUE(at::equal(y.cpu(), (x.mm(w) + 1).narrow(0, 1, 2).t()));
  EXPECT_GE(stand_in_calls() - before, 4);
}

TEST(StandIn, WritesThroughViews) {
  Tensor x = at::zeros({4, 3}, stand_in());
  x.narrow(0, 1, 2).t().add_(2);
  x.select(1, 0).copy_(at::arange(4, at::kFloat));
  const Tensor expected = at::tensor({0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 0, 0}, at::kFloat).view({4, 3});
  EXPECT_TRUE(at::equal(x.cpu(), expected));
}

TEST(StandIn, RefusesATensorOfTheCpu) {
  const Tensor here = at::ones({3, 3}), there = here.to(stand_in());
  EXPECT_THAT(refusal([&] { (void)(there + here); }), HasSubstr("same device"));
  EXPECT_THAT(refusal([&] { (void)here.mm(there); }), HasSubstr("is on cpu"));
  EXPECT_THAT(refusal([&] { (void)at::cat({there, here}); }), HasSubstr("is on cpu"));
  EXPECT_THAT(refusal([&] { (void)ops::linear(there, here); }), HasSubstr("is on cpu"));
  EXPECT_EQ(refusal([&] { (void)(there * 2.0); }), "") << "a number may be";
}

TEST(StandIn, RefusesMasksOfTheCpuAndBlockListsOfItsOwn) {
  const Tensor qkv = at::ones({1, 4, 3, 1, 2}, stand_in());
  const Tensor mask = at::ones({1, 4}, at::kByte);
  const auto pattern = ops::diagonal_pattern(4, 2);
  EXPECT_THAT(refusal([&] {
                (void)ops::packed_attention(qkv, pattern, {mask, mask});
              }),
              HasSubstr("key_mask is on cpu"));
  const Tensor there = mask.to(stand_in());
  EXPECT_EQ(refusal([&] { (void)ops::packed_attention(qkv, pattern, {there, there}); }), "");
  auto lists = pattern;
  lists.offsets = lists.offsets.to(stand_in());
  EXPECT_THAT(refusal([&] {
                (void)ops::packed_attention(qkv, lists, {there, there});
              }),
              HasSubstr("not the CPU"));
}

TEST(StandInDeathTest, EndsTheProgramWhenItsMemoryIsReadByTheHost) {
  const Tensor x = at::ones({3}, stand_in());
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(std::printf("%f", *x.const_data_ptr<float>()), "");
}

}  // namespace
}  // namespace lra
