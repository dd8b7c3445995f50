// The error measure of the tests of recurrences.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace lra::kernels {

// Largest difference, relative to the largest expected value.
template <typename T, typename U>
double largest_error(const std::vector<T>& got, const std::vector<U>& want) {
  double difference = 0, size = 1e-30;
  for (size_t i = 0; i < want.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - want[i]));
    size = std::max(size, std::abs(static_cast<double>(want[i])));
  }
  return difference / size;
}

}  // namespace lra::kernels
