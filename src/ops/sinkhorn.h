// Sinkhorn normalization: a matrix of logits to a nearly doubly stochastic matrix, a soft
// permutation (Sinkhorn 1964; Mena et al. 2018, arXiv:1802.08665, section 2).
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// logits [B, H, N, N], float32 or float64; valid bool [B, N], undefined: all. Starting from
// exp(logits), `iterations` times (at least 1): divide each row by its sum, then each column by its
// own. Rows and columns of invalid items are ignored and come out as 0.
//
// In log space, so logits may be of any size. Differentiable (once); the gradient needs the logits
// and two vectors [B, H, N] per iteration, but no matrix per iteration.
Tensor sinkhorn(const Tensor& logits_BHNN, const Tensor& valid_BN, int64_t iterations);

// Throws CheckFailure unless these can be arguments of the operator.
void check_sinkhorn(const Tensor& logits_BHNN, const MaybeTensor& valid_BN, int64_t iterations);

// Standard Gumbel noise in the shape [B, H, N, N], type (float32 or float64) and device of
// `logits`: element (n, l) of plane b * H + h is a function of the key and of these indices,
// independent of N: -log(-log((r + 0.5) / 2^32)) with r word l of RandomStream(key, plane, n),
// base/rng.h, in double.
Tensor gumbel_noise_like(const Tensor& logits_BHNN, uint64_t key);

}  // namespace lra::ops
