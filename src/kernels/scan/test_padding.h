// Padding for the tests of recurrences.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace lra::kernels {

// Lengths of the examples of a batch: the first one's is `length`, the others' are shorter.
inline std::vector<int32_t> draw_lengths(RandomStream& random, int64_t batch, int64_t length) {
  std::vector<int32_t> lengths;
  for (int64_t n = 0; n < batch; ++n) {
    lengths.push_back(static_cast<int32_t>(n == 0 ? length : random.below(length)));
  }
  return lengths;
}

// Makes the padding of rows [batch, length, width] NaN.
template <typename T>
void spoil_padding(const std::vector<int32_t>& lengths, int64_t length, int64_t width,
                   std::vector<T>& rows) {
  for (size_t n = 0; n < lengths.size(); ++n) {
    const auto example = rows.begin() + static_cast<int64_t>(n) * length * width;
    std::fill(example + lengths[n] * width, example + length * width,
              T(std::numeric_limits<float>::quiet_NaN()));
  }
}

}  // namespace lra::kernels
