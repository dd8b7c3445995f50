// Checks whether imported pictures are photographs that were stored row by row.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace lra::tasks {

// Returns a sentence for each split whose images are stored in another order of pixels or values.
// In CIFAR-10 neighboring pixels correlate by 0.92 in both directions; by 0.45 vertically if the
// colors of a pixel are adjacent in the file, and by 0.27 if pixels are permuted. Photographs are
// brighter at the top than at the bottom, by 15 of 255, and alike on the left and the right;
// transposed, inverted and upside-down ones are not. Splits of fewer than 1,000 images are not
// judged.
std::vector<std::string> doubts_of_layout(const Dataset& dataset);

}  // namespace lra::tasks
