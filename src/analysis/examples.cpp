#include "analysis/examples.h"

#include <algorithm>

namespace lra::analysis {

at::Tensor sequence_tokens(const Split& split, int64_t example, int64_t tower,
                           const TaskShape& shape) {
  const int64_t length = std::min(split.sequence_length(example, tower), shape.length);
  at::Tensor tokens_1L = at::empty({1, length}, at::kInt);
  split.read_tokens(example, tower,
                    {tokens_1L.mutable_data_ptr<int32_t>(), static_cast<size_t>(length)});
  return tokens_1L;
}

}  // namespace lra::analysis
