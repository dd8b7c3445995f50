// A linear recurrence whose steps, inputs and outputs depend on the sequence: the state space of
// Mamba.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// x and dt [B, L, D], b and c [B, L, G, N] for G groups of D / G neighboring channels, float32,
// float64 or bfloat16; the others float64 with float64, else float32, like the computation: a [N,
// D], at most 0, dt_bias [D], and if they are defined bias [N, D] and skip [D]. With frequencies
// [N, D] states are complex, and b and c [B, L, G, 2 N] and bias [2 N, D] have real and then
// imaginary parts. The mask, uint8 [B, L], ones first, may be undefined.
struct SelectiveScanInput {
  Tensor x_BLD, dt_BLD, a_ND, b_BLGN, c_BLGN, dt_bias_D, bias_ND = {}, skip_D = {};
  bool reversed = false;
  Tensor mask_BL = {};
  Tensor frequency_ND = {};
};

// y [B, L, D] with y[t] = sum_n c_n[t] h_n[t] + skip x[t], where h_n[t] = exp(s a_n) h_n[t - 1] + s
// (b_n[t] + bias_n) x[t] and s = log(1 + exp(dt[t] + dt_bias)) (kernels/scan/selective_scan.h),
// a_n + i frequency_n instead of a_n and the real part of y where states are complex;
// `reversed` runs from the end of each example. Where the mask is 0, nothing is read, and y and
// gradients are 0.
//
// Differentiable in all tensors but the mask; they and kept_states() are kept for the backward
// pass. The same bits at any number of threads. CheckFailure for other shapes or dtypes, and for a
// mask that is not contiguous; lra::Error for one with ones after zeros (on the CPU).
Tensor selective_scan(const SelectiveScanInput& in);

// The same, composed of the library's differentiable operators (ops/composed.h), position by
// position: O(B L D N) numbers are kept for its gradient.
Tensor composed_selective_scan(const SelectiveScanInput& in);

// How many states a forward pass on the CPU keeps for its backward pass: one before each 64th
// position, none in float64.
int64_t kept_states(const Tensor& x, const Tensor& b);

// CheckFailure unless these are arguments of torch.ops.lra.selective_scan, on any device.
void check_selective_scan(const SelectiveScanInput& in);

}  // namespace lra::ops
