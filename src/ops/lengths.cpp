#include <algorithm>

#include "ops/dispatch.h"

namespace lra::ops {

Tensor lengths_of(const MaybeTensor& mask) {
  if (!mask) return {};
  if (!mask->is_cpu()) return mask->sum(1, /*keepdim=*/false, at::kInt);
  const int64_t batch = mask->size(0), length = mask->size(1);
  const Tensor lengths = at::empty({batch}, at::kInt);
  for (int64_t b = 0; b < batch; ++b) {
    const uint8_t *row = mask->const_data_ptr<uint8_t>() + b * length, *end = row + length;
    const uint8_t* padding = std::find(row, end, uint8_t{0});
    if (std::any_of(padding, end, [](uint8_t valid) { return valid != 0; })) {
      throw Error({.where = "mask",
                   .what = "has tokens after padding in row " + std::to_string(b),
                   .expected = "padding on the right"});
    }
    lengths.mutable_data_ptr<int32_t>()[b] = static_cast<int32_t>(padding - row);
  }
  return lengths;
}

}  // namespace lra::ops
