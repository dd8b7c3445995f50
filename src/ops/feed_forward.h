// The two-layer MLP of an encoder block: W2 dropout(gelu_tanh(W1 x + b1)) + b2, with or without
// the layer norm (eps 1e-6) in front of it and the residual around it.
#pragma once

#include <optional>

#include "ops/libtorch.h"

namespace lra::ops {

// x [..., D], w1 [M, D], b1 [M], w2 [D, M], b2 [D] -> [..., D].  With norm_weight and norm_bias
// [D], x is normalized first; with residual_key the result is x + dropout(that), at the same rate.
// Keeps x and the hidden values before GELU for the backward pass,
// which recomputes everything after GELU; without gradients nothing is kept and, without dropout,
// GELU is fused into the first product. Rows are computed in slices, so that nothing else of the
// hidden width exists for all of them.
Tensor feed_forward(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                    const Tensor& b2, double dropout, uint64_t key, const Tensor& norm_weight = {},
                    const Tensor& norm_bias = {}, std::optional<uint64_t> residual_key = {});

}  // namespace lra::ops
