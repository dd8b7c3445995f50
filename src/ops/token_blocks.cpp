#include "ops/token_blocks.h"

#include "ops/dispatch.h"

namespace lra::ops {
namespace {

Tensor without_tokens(const Tensor& mask_BL) {
  return mask_BL.eq(0).view({-1, mask_BL.size(1), 1, 1, 1});
}

// The tokens in their blocks [B, H, N, b G E], in the order of the input [B, L, G, H, E].
Tensor tokens_of(const Tensor& blocks, at::IntArrayRef shape) {
  return blocks.view({shape[0], shape[3], -1, shape[2], shape[4]})
      .narrow(2, 0, shape[1])
      .permute({0, 2, 3, 1, 4});
}

struct TokenBlocksFunction : torch::autograd::Function<TokenBlocksFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const MaybeTensor& mask,
                        int64_t block) {
    const Tensor mask_BL = tensor_or_empty(mask);
    const int64_t count = (x.size(1) + block - 1) / block, missing = count * block - x.size(1);
    const Tensor blocks =
        at::empty({x.size(0), x.size(3), count, block * x.size(2) * x.size(4)}, x.options());
    const Tensor tokens = tokens_of(blocks, x.sizes());
    tokens.copy_(x);
    if (mask_BL.defined()) tokens.masked_fill_(without_tokens(mask_BL), 0);
    if (missing > 0) {
      blocks.select(2, count - 1)
          .unflatten(2, {block, -1})
          .narrow(2, block - missing, missing)
          .zero_();
    }
    ctx->save_for_backward({mask_BL});
    ctx->saved_data["shape"] = x.sizes().vec();
    return blocks;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const Tensor mask_BL = ctx->get_saved_variables()[0];
    Tensor grad = tokens_of(grads[0].contiguous(), ctx->saved_data["shape"].toIntVector());
    if (mask_BL.defined()) grad = grad.masked_fill(without_tokens(mask_BL), 0);
    return {grad, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor token_blocks(const Tensor& x_BLGHE, const Tensor& mask_BL, int64_t block) {
  LRA_CHECK_EQ(x_BLGHE.dim(), 5);
  LRA_CHECK_GE(block, 1);
  if (mask_BL.defined()) {
    LRA_CHECK(mask_BL.dim() == 2 && mask_BL.size(0) == x_BLGHE.size(0));
    LRA_CHECK_EQ(mask_BL.size(1), x_BLGHE.size(1));
  }
  return TokenBlocksFunction::apply(x_BLGHE, optional_tensor(mask_BL), block);
}

}  // namespace lra::ops
