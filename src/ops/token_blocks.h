// The tokens of a sequence as blocks that can be weighted and summed as a whole.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// x [B, L, G, H, E] -> [B, H, N, b * G * E], N = ceil(L / b) blocks of b tokens. Zeros where the
// last block has no token and where mask uint8 [B, L] (undefined: all tokens) is 0, regardless of
// x. One copy forward and, without a mask, none of a contiguous gradient.
Tensor token_blocks(const Tensor& x_BLGHE, const Tensor& mask_BL, int64_t block);

}  // namespace lra::ops
