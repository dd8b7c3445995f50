// A control for what an encoder gains by seeing far: tokens in blocks that know nothing of each
// other (model.receptive_field).
#pragma once

#include <cstdint>

#include "ops/libtorch.h"

namespace lra::models {

struct TokenBlocks {
  at::Tensor x_BLD;      // [R C, width, D], with CLS one place more: the blocks of a row in turn
  at::Tensor mask_BL;    // uint8, alike; undefined when nothing is padded
  at::Tensor weight_RC;  // float32: the block's share of the valid tokens of its row
};

// x_RLD: embedded rows, with `has_cls` the vector CLS in front, which every block gets; mask_RL:
// uint8 [R, L], or undefined. The last block is padded. A block without a token has weight 0, and
// its first place counts as valid for the mixers.
TokenBlocks cut_into_blocks(const at::Tensor& x_RLD, const at::Tensor& mask_RL, int64_t width,
                            bool has_cls);

// What was read from each block, [R C, D] -> [R, D]: their mean by weight, which of means over
// tokens is the mean over all tokens. A row without a token gives CLS of its first block, else 0.
at::Tensor mean_of_blocks(const at::Tensor& pooled_BD, const at::Tensor& weight_RC);

}  // namespace lra::models
