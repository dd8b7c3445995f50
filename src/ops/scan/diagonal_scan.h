// Linear recurrences with a diagonal state matrix: the sequence map of S4D, DSS and exponential
// moving averages.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

struct DiagonalScanInput {
  Tensor x_BLD = {};    // float32, float64 or bfloat16
  Tensor a_PND = {};    // P = 2: real and imaginary parts; P = 1: real
  Tensor c_KPND = {};   // K = 1: each position sees those before it; 2: those behind it too
  Tensor skip_D = {};   // may be undefined
  Tensor mask_BL = {};  // uint8, ones first, or undefined
};

// y[l] = Re sum_n c_0n s_n[l] + skip x[l] with s_n[l] = a_n s_n[l - 1] + x[l], and with a second
// direction also Re sum_n c_1n s'_n[l + 1] with s'_n[l] = a_n s'_n[l + 1] + x[l]: per channel the
// convolution with the kernel Re sum_n c_0n a_n^l, and with that of c_1 backward from l - 1 on
// (kernels/scan/diagonal_scan.h). a, c and skip are float64 with float64 x, else float32, and so
// are states and sums. x where the mask is 0 is not read; y and the gradient of x are 0 there.
// Differentiable in x, a, c and skip; only the arguments are kept for the backward pass, whose
// memory is O(length N) numbers a thread, with many states that of a convolution
// (kernels/scan/scan_by_convolution.h). The same bits at any number of threads. CheckFailure for
// other shapes or dtypes, and for a mask that is not contiguous; lra::Error for one with
// ones after zeros (on the CPU).
Tensor diagonal_scan(const DiagonalScanInput& in);

// The same, composed of the library's operators (ops/composed.h).
Tensor composed_diagonal_scan(const Tensor& x, const Tensor& a, const Tensor& c,
                              const MaybeTensor& skip, const MaybeTensor& mask);

// CheckFailure unless these are arguments of torch.ops.lra.diagonal_scan, on any device.
void check_diagonal_scan(const Tensor& x, const Tensor& a, const Tensor& c, const MaybeTensor& skip,
                         const MaybeTensor& mask);

}  // namespace lra::ops
