// Which examples an analysis reads, and how: one at a time, at their own length.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "base/task_shape.h"
#include "tasks/dataset.h"

namespace lra::analysis {

// Pixels per side when the examples of a task are square images, else 0.
int64_t image_side(const TaskShape& shape);

// `count` examples of a split, drawn by a permutation that is the same in every run; all of them
// when there are no more.
std::vector<int64_t> drawn_examples(int64_t split_size, int64_t count);

// The tokens of one sequence, int32 [1, L], cut to the task's length; L is 0 for an empty one.
at::Tensor sequence_tokens(const tasks::Split& split, int64_t example, int64_t tower,
                           const TaskShape& shape);

}  // namespace lra::analysis
