// A linear recurrence whose state is a matrix for each head: decayed linear attention and the delta
// rule.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// q and k [B, L, G, K], where H / G neighboring heads share one, v [B, L, H, V], float32, float64
// or bfloat16, all of them parts of longer rows if need be; log_decay [B, L, H, 1] or [B,
// L, H, K], at most 0 and finite, and beta [B, L, H], float64 with float64, else float32, like the
// computation. Without beta, which is then 1, there is no delta rule. The mask, uint8 [B, L], ones
// first, may be undefined, and so may `reads`, of k's shape and type: what the delta rule reads by
// instead of k.
struct MatrixScanInput {
  Tensor q_BLGK, k_BLGK, v_BLHV, log_decay_BLHK, beta_BLH = {};
  int64_t reversed_heads = 0;
  Tensor mask_BL = {};
  bool delta = true;
  Tensor reads_BLGK = {};

  bool has_delta_rule() const { return delta && beta_BLH.defined(); }
};

// o [B, L, H, V] with o_t = S_t^T q_t, S_t = diag(exp(log_decay_t)) S_{t-1} + k_t u_t^T, where u_t
// is beta_t v_t, or with `delta` beta_t (v_t - (diag(exp(log_decay_t)) S_{t-1})^T reads_t)
// (kernels/scan/matrix_scan.h). The last `reversed_heads` heads run from the end of each example.
// Where the mask is 0, nothing is read, and o and gradients are 0.
//
// Differentiable in all tensors but the mask; only they are kept for the backward pass. The same
// bits at any number of threads. On devices without a kernel for it, it is the composed version.
// CheckFailure for other shapes or dtypes, and for a mask that is not contiguous; lra::Error for
// one with ones after zeros (on the CPU).
Tensor matrix_scan(const MatrixScanInput& in);

// The same, composed of the library's differentiable operators, in chunks of 64 positions, or 16
// with a decay for each row of the state: O(B H L (chunk + K V / chunk)) numbers are kept for its
// gradient, and K times as many for chunks with decays of rows.
Tensor composed_matrix_scan(const MatrixScanInput& in);

// The gradients of q, k, v, log_decay, beta and reads, empty without them, for that of o, by the
// composed version.
using MatrixScanGradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
MatrixScanGradients composed_matrix_scan_backward(const Tensor& grad, const MatrixScanInput& in);

// CheckFailure unless these are arguments of torch.ops.lra.matrix_scan, on any device.
void check_matrix_scan(const MatrixScanInput& in);

}  // namespace lra::ops
