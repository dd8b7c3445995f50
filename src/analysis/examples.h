// Reads the examples of an analysis: one at a time, at their own length.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/task_shape.h"
#include "data/dataset.h"
#include "ops/libtorch.h"

namespace lra::analysis {

// The tokens of one sequence, int32 [1, L], cut to the task's length; L is 0 for an empty one.
inline at::Tensor sequence_tokens(const Split& split, int64_t example, int64_t tower,
                                  const TaskShape& shape) {
  const int64_t length = std::min(split.sequence_length(example, tower), shape.length);
  at::Tensor tokens_1L = at::empty({1, length}, at::kInt);
  split.read_tokens(example, tower,
                    {tokens_1L.mutable_data_ptr<int32_t>(), static_cast<size_t>(length)});
  return tokens_1L;
}

}  // namespace lra::analysis
