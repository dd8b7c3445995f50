// A control for the gain of an encoder from long range: tokens in independent blocks
// (model.receptive_field).
#pragma once

#include <cstdint>

#include "models/layout.h"
#include "ops/libtorch.h"

namespace lra::models {

// The blocks that are computed: of each row those with tokens, at least the first one. K blocks of
// R rows, up to C in a row.
struct TokenBlocks {
  at::Tensor x_KLD;      // [K, width, D], with CLS one place more: the blocks of a row in turn
  Padding padding = {};  // of the blocks; undefined when all are full
  int64_t rows = 0, blocks = 0;  // R, C
  // Undefined when all blocks are full.
  at::Tensor places_K = {};   // int64: which of the R C blocks each is
  at::Tensor weight_K1 = {};  // float32: the block's share of the tokens of its row
};

// The number of blocks of `width` that are computed for rows with these numbers of tokens, CLS left
// out. `lengths_R`: int32, on the CPU, or undefined if all rows have `length` tokens.
int64_t num_blocks(const at::Tensor& lengths_R, int64_t rows, int64_t length, int64_t width);

// x_RLD: embedded rows, with `has_cls` the vector CLS in front, which every block gets; lengths_R:
// int32 on the CPU, how many positions of each row are valid, CLS included, or undefined when all
// are. The last block is padded. The first block of a row without a token has weight 1 with CLS and
// 0 without.
TokenBlocks cut_into_blocks(const at::Tensor& x_RLD, const at::Tensor& lengths_R, int64_t width,
                            bool has_cls);

// Averages the vectors read from the blocks by weight, [K, D] -> [R, D]; for means over tokens the
// result is the mean over all tokens. A row without a token gives CLS of its first block, else 0.
at::Tensor mean_of_blocks(const at::Tensor& pooled_KD, const TokenBlocks& blocks);

}  // namespace lra::models
