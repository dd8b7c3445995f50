// A linear recurrence with a state and decays of its own for each channel: minGRU and RG-LRU.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// h [B, L, D] with h_t = a_t h_{t-1} + v_t (kernels/scan/gated_scan.h), v float32, float64 or
// bfloat16, a [B, L, D] float64 with float64, else float32, like the computation. The last
// `reversed_channels` channels run from the end of each example. The mask, uint8 [B, L], ones
// first, may be undefined; where it is 0, nothing is read, and h and gradients are 0.
//
// Differentiable in a and v; a, h and the mask are kept for the backward pass. The same bits at any
// number of threads. On devices without a kernel for it, it is the composed version. CheckFailure
// for other shapes or dtypes, and for a mask that is not contiguous; lra::Error for one with ones
// after zeros (on the CPU).
Tensor gated_scan(const Tensor& a_BLD, const Tensor& v_BLD, int64_t reversed_channels = 0,
                  const Tensor& mask_BL = {});

// The same, and the gradients of a and v for that of h, composed of the library's differentiable
// operators, position by position.
Tensor composed_gated_scan(const Tensor& a, const Tensor& v, int64_t reversed_channels,
                           const MaybeTensor& mask);
std::tuple<Tensor, Tensor> composed_gated_scan_backward(const Tensor& grad, const Tensor& a,
                                                        const Tensor& h, int64_t reversed_channels,
                                                        const MaybeTensor& mask);

// CheckFailure unless these are arguments of torch.ops.lra.gated_scan, on any device.
void check_gated_scan(const Tensor& a, const Tensor& v, int64_t reversed_channels,
                      const MaybeTensor& mask);

}  // namespace lra::ops
