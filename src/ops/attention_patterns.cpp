#include "ops/attention.h"

namespace lra::ops {

AttentionPattern diagonal_pattern(int64_t length, int64_t block) {
  const int64_t num_blocks = (length + block - 1) / block;
  return {.offsets = at::arange(num_blocks + 1, at::kLong),
          .key_blocks = at::arange(num_blocks, at::kInt),
          .query_block = block,
          .key_block = block};
}

}  // namespace lra::ops
