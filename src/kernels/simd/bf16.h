// bfloat16, the upper half of a float: how arrays are held in memory. Kernels compute in float.
// Device kernels may also call the constexpr functions here and in the views of
// kernels/attention/attention.h.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace lra::kernels {

// Rounds to the nearest, ties to even; numbers that are too large become infinite, NaN stays NaN.
// Relative error 2^-8.
struct Bf16 {
  Bf16() = default;
  constexpr Bf16(float x) : bits(rounded(x)) {}
  constexpr operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }

  uint16_t bits;

 private:
  static constexpr uint16_t rounded(float x) {
    if (x != x) return 0x7FC0;
    const auto word = std::bit_cast<uint32_t>(x);
    return static_cast<uint16_t>((word + 0x7FFF + (word >> 16 & 1)) >> 16);
  }
};
static_assert(sizeof(Bf16) == 2 && std::is_trivially_copyable_v<Bf16>);

// The accumulator type of values of type T.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, Bf16>, float, T>;

}  // namespace lra::kernels
