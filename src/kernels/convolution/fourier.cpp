#include "kernels/convolution/fourier.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace lra::kernels {
namespace {

// The place of a frequency after the passes, each of which puts the frequencies with the same
// remainder modulo its radix next to one another.
int64_t place_of(int64_t frequency, int64_t size) {
  int64_t place = 0;
  while (size > 1) {
    const int64_t radix = fourier_radix(size);
    size /= radix;
    place += frequency % radix * size;
    frequency /= radix;
  }
  return place;
}

}  // namespace

template <typename W>
FourierPlan<W>::FourierPlan(int64_t size) : size_(size) {
  LRA_CHECK(size >= 4 && fourier_size(size) == size);
  for (int64_t n = size; n > 1; n /= fourier_radix(n)) {
    const int64_t radix = fourier_radix(n);
    for (int64_t j = 0; j < n / radix; ++j) {
      for (int64_t power = 1; power < radix; ++power) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(j * power % n) / static_cast<double>(n);
        roots_.push_back(static_cast<W>(std::cos(angle)));
        roots_.push_back(static_cast<W>(std::sin(angle)));
      }
    }
  }
  for (int64_t f = 0; f <= size / 2; ++f) {
    pairs_.push_back({static_cast<int32_t>(place_of(f, size)),
                      static_cast<int32_t>(place_of((size - f) % size, size))});
  }
}

int64_t fourier_size(int64_t least) {
  int64_t size = 4;
  while (size < least) size *= 2;
  return size >= 8 && size / 4 * 3 >= least ? size / 4 * 3 : size;
}

template class FourierPlan<float>;
template class FourierPlan<double>;

}  // namespace lra::kernels
