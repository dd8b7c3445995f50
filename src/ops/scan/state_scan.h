// A linear recurrence with a diagonal complex state matrix over given inputs: the states of S5 and
// LRU.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// The states x [B, L, K, 2, P] of the inputs v [B, L, 2, P] (real and imaginary parts) and the
// poles a [2, P]: x[t] = a x[t - 1] + v[t] for K = 1. `bidirectional`, K = 2, has a second
// direction with its own states, x'[t] = a x'[t + 1] + v[t]; both see v[t]
// (kernels/scan/state_scan.h). The mask, uint8 [B, L], ones first, may be undefined. Where it is 0,
// v is not read, x and the gradient of v are 0, and the second direction starts before it. v is
// float32, float64 or bfloat16; a is float64 with float64, else float32, and so are the states
// during the computation.
//
// Differentiable in v and a; x, a and the mask are kept for the backward pass. The same bits at any
// number of threads. CheckFailure for other shapes or dtypes, and for a mask that is not
// contiguous; lra::Error for one with ones after zeros (on the CPU).
Tensor state_scan(const Tensor& v_BL2P, const Tensor& a_2P, bool bidirectional,
                  const Tensor& mask_BL = {});

// The same, and the gradients of v and a for that of x, composed of the library's differentiable
// operators (ops/composed.h).
Tensor composed_state_scan(const Tensor& v, const Tensor& a, bool bidirectional,
                           const MaybeTensor& mask);
std::tuple<Tensor, Tensor> composed_state_scan_backward(const Tensor& grad, const Tensor& x,
                                                        const Tensor& a, const MaybeTensor& mask);

// CheckFailure unless these are arguments of torch.ops.lra.state_scan, on any device.
void check_state_scan(const Tensor& v, const Tensor& a, const MaybeTensor& mask);

}  // namespace lra::ops
