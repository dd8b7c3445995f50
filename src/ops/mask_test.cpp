// Masks of other forms than padding on the right: operators that cannot mean them refuse them, the
// others give what they give for the tokens alone.
#include <gmock/gmock.h>

#include "ops/attention/feature_attention.h"
#include "ops/scan/diagonal_scan.h"
#include "ops/scan/gated_scan.h"
#include "ops/scan/matrix_scan.h"
#include "ops/scan/selective_scan.h"
#include "ops/scan/state_scan.h"
#include "ops/sorted_runs.h"
#include "ops/test_tensors.h"

namespace lra::ops {
namespace {

using at::Tensor;
using testing::HasSubstr;

Tensor mask_of(std::initializer_list<int64_t> row) {
  return at::tensor(std::vector<int64_t>(row)).to(at::kByte).unsqueeze(0);
}

// The refusal of each scan of five positions; "" from one that accepts the mask.
std::vector<std::string> refusals(const Tensor& mask_BL) {
  const auto of = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto random = [](at::IntArrayRef shape) { return random_tensor(shape, 1, at::kFloat); };
  const Tensor x = random({1, 5, 4}), b = random({1, 5, 1, 2});
  return {of([&] {
            diagonal_scan({x, random({2, 3, 4}), random({1, 2, 3, 4}), {}, mask_BL});
          }),
          of([&] {
            state_scan(random({1, 5, 2, 3}), random({2, 3}), true, mask_BL);
          }),
          of([&] { gated_scan(x, x, 1, mask_BL); }), of([&] {
            matrix_scan({b, b, b, b, {}, 0, mask_BL});
          }),
          of([&] {
            selective_scan({x, x, random({2, 4}), b, b, random({4}), {}, {}, false, mask_BL});
          })};
}

TEST(MaskOfAScan, IsPaddingOnTheRight) {
  for (const Tensor& mask :
       {mask_of({1, 1, 1, 0, 0}), mask_of({1, 1, 1, 1, 1}), mask_of({0, 0, 0, 0, 0})}) {
    EXPECT_THAT(refusals(mask), testing::Each(""));
  }
  for (const Tensor& mask : {mask_of({0, 0, 1, 1, 1}), mask_of({1, 1, 0, 1, 1}),
                             mask_of({1, 0, 1, 0, 0}), mask_of({0, 0, 0, 0, 1})}) {
    EXPECT_THAT(refusals(mask),
                testing::Each(
                    HasSubstr("has tokens after padding in row 0; expected padding on the right")));
  }
}

const Tensor kHoles = mask_of({0, 1, 1, 0, 1, 0});
const Tensor kTokens = at::tensor({1, 2, 4});  // int64

TEST(MaskWithHoles, LeavesTheTokensAlone) {
  const Tensor qkv = random_tensor({1, 6, 3, 2, 4}, 2), alone = qkv.index_select(1, kTokens);
  const Tensor y = packed_feature_attention(qkv, kHoles, {}).index_select(1, kTokens);
  EXPECT_LT(relative_error(y, packed_feature_attention(alone, {}, {})), 1e-14);

  const Tensor x = random_tensor({1, 6, 2, 4}, 3), rotations = random_tensor({2, 3, 4, 2}, 4);
  const Tensor buckets = hash_buckets(x, rotations, kHoles).index_select(3, kTokens);
  EXPECT_TRUE(at::equal(buckets, hash_buckets(x.index_select(1, kTokens), rotations, {})));
}

}  // namespace
}  // namespace lra::ops
