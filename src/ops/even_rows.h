// Parts of the last axis of a tensor, read in place: rows that lie the same distance apart.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// t, or a copy of it if its rows do not lie the same distance apart, or have gaps inside.
inline Tensor with_even_rows(const Tensor& t) {
  bool is_even = t.dim() > 0 && (t.stride(-1) == 1 || t.size(-1) == 1);
  for (int64_t axis = 0; axis + 2 < t.dim(); ++axis) {
    is_even = is_even && t.stride(axis) == t.stride(axis + 1) * t.size(axis + 1);
  }
  return is_even ? t : t.contiguous();
}

// The distance of rows of with_even_rows().
inline int64_t row_stride(const Tensor& t) { return t.dim() < 2 ? t.size(-1) : t.stride(-2); }

}  // namespace lra::ops
