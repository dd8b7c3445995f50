// Fourier transforms of 32 channels at a time, for circular convolutions: sixteen channels a and
// sixteen channels b lie at one place of a circle as a + i b. Channels are the vector axis, so no
// number ever changes its lane.
#pragma once

#include <cstdint>
#include <vector>

namespace lra::kernels {

inline constexpr int64_t kFourierLanes = 16;
// Numbers of one place: the sixteen of a, then those of b.
inline constexpr int64_t kFourierRow = 2 * kFourierLanes;

// The radix of the first pass over n places; those that follow have n / radix places each.
constexpr int64_t fourier_radix(int64_t n) { return n % 3 == 0 ? 3 : n % 4 == 0 ? 4 : 2; }

// Places of the frequencies f and -f in a transformed array, one place if f = -f modulo the size.
struct FourierPair {
  int32_t place, mirror;
};

// The constants of transforms over a circle of `size` places.
template <typename W>
struct FourierTables {
  int64_t size;
  // For each pass, longest first: w^j, w^2j and so on below w^(radix j) for j < n / radix, with w =
  // exp(-2 pi i / n), real and imaginary parts.
  const W* roots;
  int64_t num_pairs;         // size / 2 + 1
  const FourierPair* pairs;  // in the order of their frequencies
};

// Owns the tables. The size is a power of two or three times one, at least four.
template <typename W>
class FourierPlan {
 public:
  explicit FourierPlan(int64_t size);
  FourierTables<W> tables() const {
    return {size_, roots_.data(), static_cast<int64_t>(pairs_.size()), pairs_.data()};
  }

 private:
  int64_t size_;
  std::vector<W> roots_;
  std::vector<FourierPair> pairs_;
};

// The smallest size of a plan that is not below `least`.
int64_t fourier_size(int64_t least);

}  // namespace lra::kernels
