// The error measure of the tests of recurrences.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace lra::kernels {

// Largest difference, relative to the largest expected value; infinite if a result is not finite.
template <typename T, typename U>
double relative_error(const std::vector<T>& got, const std::vector<U>& want) {
  double error = 0, size = 1e-30;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    error = std::max(error, difference);
    size = std::max(size, std::abs(static_cast<double>(want[i])));
  }
  return error / size;
}

}  // namespace lra::kernels
