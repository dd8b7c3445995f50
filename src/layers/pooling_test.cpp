#include "layers/pooling.h"

#include <gtest/gtest.h>

#include "ops/test_tensors.h"

namespace lra::layers {
namespace {

using at::Tensor;

TEST(Pool, MeanIsOverValidPositionsAlone) {
  const Tensor x = ops::random_tensor({3, 5, 4}, 1);
  Tensor mask = at::zeros({3, 5}, at::kByte);
  mask[0].fill_(1);
  mask[1].narrow(0, 0, 2).fill_(1);
  const Tensor pooled = pool(x, mask, "mean");
  EXPECT_LE(ops::relative_error(pooled[0], x[0].mean(0)), 1e-12);
  EXPECT_LE(ops::relative_error(pooled[1], (x[1][0] + x[1][1]) / 2), 1e-12);
  EXPECT_TRUE(pooled[2].eq(0).all().item<bool>());
  EXPECT_LE(ops::relative_error(pool(x, {}, "mean"), x.mean(1)), 1e-12);
}

TEST(PairFeatures, JoinTheTwoTowersOfAnExample) {
  const at::Tensor pooled = at::tensor({1.0, 2.0, 3.0, 5.0}).view({2, 2});
  const at::Tensor nli = at::tensor({1.0, 2.0, 3.0, 5.0, 3.0, 10.0, -2.0, -3.0}).view({1, 8});
  EXPECT_TRUE(at::equal(pair_features(pooled, "nli"), nli));
  EXPECT_TRUE(at::equal(pair_features(pooled, "concat"), pooled.view({1, 4})));
}

TEST(Pool, ClsIsPositionZero) {
  const Tensor x = ops::random_tensor({3, 5, 4}, 2);
  EXPECT_TRUE(at::equal(pool(x, {}, "cls"), x.select(1, 0)));
}

}  // namespace
}  // namespace lra::layers
