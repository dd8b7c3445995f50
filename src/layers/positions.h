// Encodings of positions.
#pragma once

#include "ops/libtorch.h"

namespace lra::layers {

// sin(p w_c) in channel 2c and cos(p w_c) in channel 2c + 1, w_c = 10000^(-2c / D), computed in
// float64; [length, D] of `type` (Vaswani et al. 2017, section 3.5).
at::Tensor sinusoid_table(int64_t length, int64_t dim, at::ScalarType type = at::kFloat);

// The table of this width for ops::rotary() of x [B, L, H, E], E even, on its device: turned by the
// angles p w_c, products of queries and keys depend only on the distance (Su et al. 2021,
// arXiv:2104.09864, section 3.2).
at::Tensor rotary_table(const at::Tensor& x_BLHE);

}  // namespace lra::layers
