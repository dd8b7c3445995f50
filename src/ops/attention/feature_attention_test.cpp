#include "ops/attention/feature_attention.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;
using kernels::FeatureMap;

const FeatureAttentionOptions kMaps[] = {{FeatureMap::kElu, 0, 1e-6}, {FeatureMap::kRelu, 1e-3, 0}};

Tensor features(const Tensor& x, const FeatureAttentionOptions& o) {
  return o.map == FeatureMap::kElu ? at::elu(x) + 1 : at::relu(x) + o.offset;
}

// The definition with its L x L array of normalized weights.
TensorFunction oracle(const Tensor& mask_BL, const FeatureAttentionOptions& o) {
  return [=](const std::vector<Tensor>& in) {
    const auto qkv = in[0].unbind(2);
    Tensor weights_BHLS = at::einsum("blhr,bshr->bhls", {features(qkv[0], o), features(qkv[1], o)});
    if (mask_BL.defined()) {
      weights_BHLS = weights_BHLS * mask_BL.to(at::kDouble).unsqueeze(1).unsqueeze(1);
    }
    const Tensor sums = weights_BHLS.sum(-1, true) + o.eps;
    weights_BHLS = weights_BHLS / sums.masked_fill(sums == 0, 1);
    return at::einsum("bhls,bshe->blhe", {weights_BHLS, qkv[2]});
  };
}

TensorFunction ours(const Tensor& mask_BL, const FeatureAttentionOptions& o) {
  return [=](const std::vector<Tensor>& in) { return packed_feature_attention(in[0], mask_BL, o); };
}

std::vector<Tensor> packed_inputs(int64_t length, int64_t heads, int64_t width) {
  return {3 * random_tensor({3, length, 3, heads, width}, 1)};
}

// All keys, the first half, none.
Tensor ragged_tokens(int64_t length) {
  Tensor mask = at::zeros({3, length}, at::kByte);
  mask[0].fill_(1);
  mask[1].narrow(0, 0, (length + 1) / 2).fill_(1);
  return mask;
}

// Sizes around blocks of 64 rows, runs of 512 and vectors of 16.
constexpr int64_t kShapes[][3] = {{1, 1, 1},    {7, 2, 5},   {64, 1, 16},  {65, 3, 15},
                                  {130, 2, 17}, {512, 1, 8}, {1030, 2, 64}};

TEST(FeatureAttention, AgreesWithExplicitWeights) {
  for (const auto& o : kMaps) {
    for (const auto& [length, heads, width] : kShapes) {
      SCOPED_TRACE(testing::Message() << (o.map == FeatureMap::kElu ? "elu L " : "relu L ")
                                      << length << " E " << width);
      const auto in = packed_inputs(length, heads, width);
      expect_agrees(ours({}, o), at::kFloat, oracle({}, o), in);
      const Tensor mask = ragged_tokens(length);
      expect_agrees(ours(mask, o), at::kFloat, oracle(mask, o), in);
      expect_agrees(ours(mask, o), at::kDouble, oracle(mask, o), in, {1e-12, 1e-11, 1e-9});
    }
  }
}

TEST(FeatureAttention, AgreesInBf16) {
  for (const auto& o : kMaps) {
    for (const auto& [length, heads, width] : kShapes) {
      SCOPED_TRACE(testing::Message() << "L " << length << " E " << width);
      const Tensor mask = ragged_tokens(length);
      expect_agrees_in_bf16(ours(mask, o), oracle(mask, o), packed_inputs(length, heads, width), 1);
    }
  }
}

TEST(FeatureAttention, GradientIsTheSlope) {
  expect_gradient_is_slope(ours(ragged_tokens(9), kMaps[0]), packed_inputs(9, 2, 5));
}

TEST(FeatureAttention, TakesInputsOfAnyStrides) {
  const Tensor qkv = packed_inputs(9, 2, 5)[0].to(at::kFloat);
  const auto ours_of = ours(ragged_tokens(9), kMaps[0]);
  const Tensor strided = qkv.transpose(1, 4).contiguous().transpose(1, 4);
  EXPECT_TRUE(at::equal(ours_of({strided}), ours_of({qkv})));
}

// The gradient of a sum is one number for all elements.
TEST(FeatureAttention, TakesAnExpandedGradient) {
  const Tensor qkv = packed_inputs(9, 2, 5)[0].to(at::kFloat).set_requires_grad(true);
  const Tensor out = packed_feature_attention(qkv, {}, kMaps[0]);
  const Tensor of_sum = torch::autograd::grad({out.sum()}, {qkv}, {}, true)[0];
  EXPECT_TRUE(at::equal(of_sum, torch::autograd::grad({out}, {qkv}, {at::ones_like(out)})[0]));
}

TEST(FeatureAttention, TakesNoTokens) {
  const Tensor qkv = at::ones({2, 0, 3, 2, 5}).set_requires_grad(true);
  const Tensor out = packed_feature_attention(qkv, {}, kMaps[0]);
  EXPECT_EQ(out.sizes(), at::IntArrayRef({2, 0, 2, 5}));
  EXPECT_EQ(torch::autograd::grad({out.sum()}, {qkv})[0].sizes(), qkv.sizes());
}

TEST(FeatureAttention, GivesZeroWhereEveryKeyIsMasked) {
  for (const auto& o : kMaps) {
    const Tensor qkv = packed_inputs(6, 2, 5)[0].to(at::kFloat).set_requires_grad(true);
    const Tensor out = packed_feature_attention(qkv, ragged_tokens(6), o);
    EXPECT_TRUE(out[2].eq(0).all().item<bool>());
    EXPECT_TRUE(out[1].ne(0).any().item<bool>());
    const Tensor grad = torch::autograd::grad({out}, {qkv}, {loss_weights(out)})[0];
    EXPECT_TRUE(grad[2].eq(0).all().item<bool>());
  }
}

TEST(FeatureAttention, GivesTheSameBitsAtAnyNumberOfThreads) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor qkv = packed_inputs(1030, 2, 8)[0].to(type).set_requires_grad(true);
    expect_same_bits_at_any_number_of_threads([&]() -> std::vector<Tensor> {
      const Tensor y = packed_feature_attention(qkv, ragged_tokens(1030), kMaps[0]);
      return {y.detach(), torch::autograd::grad({y}, {qkv}, {loss_weights(y)})[0]};
    });
  }
}

TEST(FeatureAttention, RefusesWhatItCannotMean) {
  const Tensor qkv = packed_inputs(6, 2, 5)[0];
  EXPECT_THROW(packed_feature_attention(qkv, at::ones({3, 5}, at::kByte), {}), CheckFailure);
  EXPECT_THROW(packed_feature_attention(qkv, at::ones({3, 6}), {}), CheckFailure);
  EXPECT_THROW(packed_feature_attention(qkv, at::ones({6, 3}, at::kByte).t(), {}), CheckFailure);
  EXPECT_THROW(packed_feature_attention(qkv[0], {}, {}), CheckFailure);
}

}  // namespace
}  // namespace lra::ops
