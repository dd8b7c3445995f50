// Encodings of positions.
#pragma once

#include "ops/libtorch.h"

namespace lra::layers {

// sin(p w_c) in channel 2c and cos(p w_c) in channel 2c + 1, w_c = 10000^(-2c / D), computed in
// float64; [length, D] of `type` (Vaswani et al. 2017, section 3.5).
at::Tensor sinusoid_table(int64_t length, int64_t dim, at::ScalarType type = at::kFloat);

// Rotary encoding (Su et al. 2021, arXiv:2104.09864, section 3.2): channels 2c and 2c + 1 of
// position p turned by the angle p w_c of the table above, so that products of queries and keys
// depend only on the distance. x [B, L, H, E] with E even; sines and cosines have its dtype.
at::Tensor rotated(const at::Tensor& x_BLHE);

}  // namespace lra::layers
