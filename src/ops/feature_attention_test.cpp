#include "ops/feature_attention.h"

#include "ops/test_tensors.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr double kEps = 1e-6;

// The definition with its L x S array of normalised weights.
TensorFunction oracle(const Tensor& mask_BS) {
  return [mask_BS](const std::vector<Tensor>& in) {
    Tensor weights_BHLS = at::einsum("blhr,bshr->bhls", {in[0], in[1]});
    if (mask_BS.defined()) {
      weights_BHLS = weights_BHLS * mask_BS.to(at::kDouble).unsqueeze(1).unsqueeze(1);
    }
    weights_BHLS = weights_BHLS / (weights_BHLS.sum(-1, true) + kEps);
    return at::einsum("bhls,bshe->blhe", {weights_BHLS, in[2]});
  };
}

TensorFunction ours(const Tensor& mask_BS) {
  return [mask_BS](const std::vector<Tensor>& in) {
    return feature_attention(in[0], in[1], in[2], mask_BS, kEps);
  };
}

// Positive features, as every feature map of the benchmark gives. B 3, H 2, R 5, E 4.
std::vector<Tensor> inputs(int64_t queries, int64_t keys) {
  return {random_tensor({3, queries, 2, 5}, 1) + 1.1, random_tensor({3, keys, 2, 5}, 2) + 1.1,
          random_tensor({3, keys, 2, 4}, 3)};
}

// All keys, the first half, none.
Tensor ragged_mask(int64_t keys) {
  Tensor mask = at::zeros({3, keys}, at::kByte);
  mask[0].fill_(1);
  mask[1].narrow(0, 0, (keys + 1) / 2).fill_(1);
  return mask;
}

TEST(FeatureAttention, AgreesWithExplicitWeights) {
  for (const auto& [queries, keys] : {std::pair{1, 1}, {7, 7}, {5, 33}, {130, 9}}) {
    SCOPED_TRACE(testing::Message() << "L " << queries << " S " << keys);
    expect_agrees(ours({}), at::kFloat, oracle({}), inputs(queries, keys));
    expect_agrees(ours(ragged_mask(keys)), at::kFloat, oracle(ragged_mask(keys)),
                  inputs(queries, keys));
  }
}

TEST(FeatureAttention, GradientIsTheSlope) {
  expect_gradient_is_slope(ours(ragged_mask(9)), inputs(5, 9));
}

TEST(FeatureAttention, GivesZeroWhereEveryKeyIsMasked) {
  const auto in = inputs(4, 6);
  const Tensor out = ours(ragged_mask(6))(in);
  EXPECT_TRUE(out[2].eq(0).all().item<bool>());
  EXPECT_TRUE(out[1].ne(0).any().item<bool>());
}

TEST(FeatureAttention, GivesZeroWhereEveryKeyIsMaskedWithoutEpsToo) {
  const auto in = inputs(4, 6);
  const Tensor mask = at::zeros({in[0].size(0), 6}, at::kByte);
  EXPECT_TRUE(ops::feature_attention(in[0], in[1], in[2], mask, 0).eq(0).all().item<bool>());
}

TEST(FeatureAttention, IgnoresMaskedKeysAndValues) {
  const auto in = inputs(4, 6);
  const Tensor mask = ragged_mask(6);
  const Tensor hidden_BS11 = (1 - mask.to(at::kDouble)).unsqueeze(-1).unsqueeze(-1);
  const Tensor changed = ours(mask)({in[0], in[1] + 50 * hidden_BS11, in[2] - 70 * hidden_BS11});
  EXPECT_TRUE(at::equal(changed, ours(mask)(in)));
}

}  // namespace
}  // namespace lra::ops
