// Reads the examples of an analysis: one at a time, at their own length.
#pragma once

#include <cstdint>

#include "base/task_shape.h"
#include "data/dataset.h"
#include "ops/libtorch.h"

namespace lra::analysis {

// The tokens of one sequence, int32 [1, L], cut to the task's length; L is 0 for an empty one.
at::Tensor sequence_tokens(const Split& split, int64_t example, int64_t tower,
                           const TaskShape& shape);

}  // namespace lra::analysis
