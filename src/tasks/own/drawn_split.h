// Validation and test splits that no file names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/frame_file.h"

namespace lra::tasks {

// Moves about `count` examples of train to the split `to`, as many of each class as its share asks
// for, in an order that `seed` decides. At least one example of each class stays in train, so fewer
// are drawn where classes are small. `labels` and `splits` are those of all examples.
void draw_split(const std::vector<int32_t>& labels, FrameSplit to, size_t count, uint64_t seed,
                std::vector<FrameSplit>& splits);

}  // namespace lra::tasks
