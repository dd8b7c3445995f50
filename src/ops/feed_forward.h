// The two-layer MLP of an encoder block: W2 dropout(gelu_tanh(W1 x + b1)) + b2.
#pragma once

#include <torch/torch.h>

namespace lra::ops {

// x [..., D], w1 [M, D], b1 [M], w2 [D, M], b2 [D] -> [..., D]. Differentiable once. Keeps x and
// the hidden values before GELU for the backward pass (what follows GELU is computed again, one
// pass over memory); without gradients nothing is kept and GELU is fused into the first product.
at::Tensor feed_forward(const at::Tensor& x, const at::Tensor& w1, const at::Tensor& b1,
                        const at::Tensor& w2, const at::Tensor& b2, double dropout, uint64_t key);

}  // namespace lra::ops
