// Convolution along the sequence with a kernel of any width for each channel.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// x [B, L, D], mask uint8 [B, L] of valid positions or undefined, kernel [D, K] -> y [B, L, D] with
// y[b, t, d] = sum over j of kernel[d, j] x[b, t + future - j, d]: lag j - future, from -future to
// K - 1 - future, of which 0 <= future < K are in the future. Positions that are not valid count as
// 0 and are 0 in y. With bfloat16 x, the kernel is float32, and so is the computation.
//
// Kernels of few lags are summed directly on the CPU (kernels/convolution/convolution.h), others go
// through Fourier transforms (kernels/convolution/transforms.h, which states the memory). The same
// bits at any number of threads.
Tensor long_convolution(const Tensor& x_BLD, const Tensor& mask_BL, const Tensor& kernel_DK,
                        int64_t future);

// The lags of a kernel that meet something in a sequence of `length` positions: a view of them, and
// how many are in the future. long_convolution() takes them out itself; whoever computes on a
// kernel before may do so on less.
struct UsedLags {
  Tensor kernel_DK;
  int64_t future;
};
UsedLags used_lags(const Tensor& kernel_DK, int64_t future, int64_t length);

// CheckFailure unless these are arguments of torch.ops.lra.convolution, on any device.
void check_convolution(const Tensor& x, const MaybeTensor& mask, const Tensor& kernel,
                       int64_t future);

}  // namespace lra::ops
