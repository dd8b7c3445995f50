// Many images of a dataset in one picture, for people.
#pragma once

#include <cstdint>

#include "base/task_shape.h"
#include "data/dataset.h"
#include "data/png_image.h"

namespace lra {

// Pixels per side when the examples of a task are square gray images, else 0.
int64_t image_side(const TaskShape& shape);

// Examples first .. first + count - 1 (fewer at the end of the split) as square gray tiles, row by
// row, in a nearly square sheet with gray lines between them. Throws lra::Error if the examples are
// not square gray images, there are none from `first` on, or the sheet would have more than 16
// million pixels.
GrayImage contact_sheet(const TaskShape& shape, const Split& split, int64_t first, int64_t count);

}  // namespace lra
