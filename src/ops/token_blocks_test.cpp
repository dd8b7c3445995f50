#include "ops/token_blocks.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr int64_t kBlocksBatch = 3, kParts = 2, kBlocksHeads = 2, kDim = 5;

// Nothing, the first half and everything but the first token of an example.
Tensor some_tokens(int64_t length) {
  Tensor mask = at::zeros({kBlocksBatch, length}, at::kByte);
  mask[1].narrow(0, 0, length / 2).fill_(1);
  mask[2].narrow(0, 1, length - 1).fill_(1);
  return mask;
}

Tensor definition(const Tensor& x, const Tensor& mask, int64_t block) {
  const int64_t count = (x.size(1) + block - 1) / block;
  const Tensor seen = mask.defined() ? x * mask.view({kBlocksBatch, -1, 1, 1, 1}) : x;
  const Tensor padded = at::constant_pad_nd(seen, {0, 0, 0, 0, 0, 0, 0, count * block - x.size(1)});
  return padded.unflatten(1, {count, block}).permute({0, 4, 1, 2, 3, 5}).flatten(3);
}

TEST(TokenBlocks, AgreeWithTheirDefinition) {
  for (const int64_t length : {1, 7, 12, 13}) {
    for (const int64_t block : {1, 4, 12, 20}) {
      for (const Tensor& mask : {Tensor(), some_tokens(length)}) {
        SCOPED_TRACE(testing::Message() << length << " " << block << " " << mask.defined());
        const Tensor x = random_tensor({kBlocksBatch, length, kParts, kBlocksHeads, kDim}, 3);
        const auto f = [&](const std::vector<Tensor>& in) {
          return token_blocks(in[0], mask, block);
        };
        const auto oracle = [&](const std::vector<Tensor>& in) {
          return definition(in[0], mask, block);
        };
        expect_agrees(f, at::kFloat, oracle, {x}, {.value = 1e-6, .gradient = 1e-6});
        expect_agrees_in_bf16(f, oracle, {x}, 1, {.value = 0x1p-8, .gradient = 0x1p-8});
        expect_gradient_is_slope(f, {x});
      }
    }
  }
}

TEST(TokenBlocks, TakeNoValueAndNoGradientThatIsMasked) {
  const Tensor mask = some_tokens(7), hidden = mask.eq(0).view({kBlocksBatch, 7, 1, 1, 1});
  Tensor x = random_tensor({kBlocksBatch, 7, kParts, kBlocksHeads, kDim}, 4);
  const Tensor expected = definition(x, mask, 4);
  x.masked_fill_(hidden, NAN).requires_grad_();
  const Tensor blocks = token_blocks(x, mask, 4);
  EXPECT_TRUE(at::equal(expected, blocks));
  // A gradient that is not contiguous, with NaN at positions without a token.
  const Tensor nan = definition(at::ones_like(x).masked_fill(hidden, NAN), {}, 4);
  const Tensor grad = nan.repeat({1, 1, 1, 2}).narrow(3, 0, nan.size(3));
  blocks.backward(grad);
  EXPECT_TRUE(at::equal(at::ones_like(x).masked_fill(hidden, 0), x.grad()));
}

TEST(TokenBlocks, AreMadeOfTensorsThatAreNotContiguous) {
  const Tensor x = random_tensor({kBlocksBatch, 7, kBlocksHeads, kParts, kDim}, 5).transpose(2, 3);
  EXPECT_TRUE(at::equal(definition(x, {}, 4), token_blocks(x, {}, 4)));
}

}  // namespace
}  // namespace lra::ops
