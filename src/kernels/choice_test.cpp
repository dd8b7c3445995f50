#include "kernels/choice.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/processor.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

class Choice : public testing::Test {
 private:
  const KernelsVariable unset_{nullptr};
};

TEST_F(Choice, TakesTheBestThatRuns) {
  Isa vectors = Isa::kRef;
  for (const Isa isa : {LRA_VECTOR_ISAS}) vectors = isa_available(isa) ? isa : vectors;
  EXPECT_EQ(choose(Op::kAttentionForward), vectors);
  const Isa pairs = has_fast_pairs() ? Isa::kAvx512Bf16 : vectors;
  EXPECT_EQ(choose(Op::kAttentionForwardBf16), isa_available(Isa::kAmx) ? Isa::kAmx : pairs);
}

TEST_F(Choice, ObeysTheEnvironment) {
  setenv("LRA_KERNELS", "ref", 1);
  for (const KernelChoice& each : kernel_choices()) EXPECT_EQ(each.implementation, "ref");
  for (const Isa isa : {LRA_VECTOR_ISAS}) {
    if (!isa_available(isa)) GTEST_SKIP() << "this processor has no " << isa_name(isa);
    setenv("LRA_KERNELS", isa_name(isa), 1);
    for (const KernelChoice& each : kernel_choices()) EXPECT_EQ(each.implementation, isa_name(isa));
  }
  if (!isa_available(Isa::kAvx512Bf16)) GTEST_SKIP() << "this processor multiplies no bfloat16";
  setenv("LRA_KERNELS", "avx512_bf16", 1);
  EXPECT_EQ(choose(Op::kAttentionBackwardBf16), Isa::kAvx512Bf16);
  EXPECT_EQ(choose(Op::kAttentionBackward), Isa::kAvx512);
  EXPECT_EQ(choose(Op::kFeatureAttentionBf16), Isa::kAvx512);
}

TEST_F(Choice, EmulatesTilesOnlyWhenForced) {
  ASSERT_EQ(isa_available(Isa::kAmxEmulated),
            isa_available(Isa::kAvx2) || isa_available(Isa::kNeon));
  if (!isa_available(Isa::kAmxEmulated)) GTEST_SKIP() << "this processor has no vectors";
  setenv("LRA_KERNELS", "amx_emulated", 1);
  EXPECT_EQ(choose(Op::kOuterProductsBf16), Isa::kAmxEmulated);
  EXPECT_EQ(choose(Op::kFeatureAttentionBf16), Isa::kAmxEmulated);
  EXPECT_NE(choose(Op::kOuterProducts), Isa::kAmxEmulated);
  EXPECT_TRUE(has_tiles());
  setenv("LRA_KERNELS", "ref", 1);
  EXPECT_FALSE(has_tiles());
}

TEST_F(Choice, RefusesUnknownNames) {
  setenv("LRA_KERNELS", "sse", 1);
  try {
    choose(Op::kAdamStep);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'sse'"), std::string::npos);
    EXPECT_NE(
        std::string(error.what()).find("ref, neon, avx2, avx512, avx512_bf16, amx or amx_emulated"),
        std::string::npos);
  }
}

TEST_F(Choice, ListsEveryOpOnce) {
  const auto choices = kernel_choices();
  ASSERT_EQ(choices.size(), static_cast<size_t>(Op::kMatrixScan) + 1);
  for (size_t n = 0; n < choices.size(); ++n) {
    for (size_t other = 0; other < n; ++other) EXPECT_NE(choices[n].op, choices[other].op);
  }
}

}  // namespace
}  // namespace lra::kernels
