// Rotary encoding of positions: kernels/pointwise/rotary.h.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// x [B, L, H, E], E even, with channels 2c and 2c + 1 of position p turned by the angle whose sine
// and cosine are table[p, 2c] and table[p, 2c + 1]; table [L, E] float64 with float64, else
// float32, without a gradient. x may be a part of longer rows. Differentiable in x; the same bits
// at any number of threads; composed of the library's operators on other devices than the CPU.
Tensor rotary(const Tensor& x_BLHE, const Tensor& table_LE);

}  // namespace lra::ops
