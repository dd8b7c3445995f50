// A short convolution, a bias and SiLU in one pass: Mamba (Gu and Dao 2023, arXiv:2312.00752,
// section 3.4).
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// Lags of kernels that are fused on the CPU.
inline constexpr int64_t kMostFusedLags = 8;

// SiLU(long_convolution(x, mask, kernel, future) + bias), 0 where the mask is 0: shapes and rules
// of long_convolution, bias [D] of the kernel's dtype. x may be a part of longer rows. Wider
// kernels and other devices take one operator after another.
Tensor convolution_silu(const Tensor& x_BLD, const Tensor& mask_BL, const Tensor& kernel_DK,
                        const Tensor& bias_D, int64_t future);

}  // namespace lra::ops
