#include "base/permutation.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/rng.h"

namespace lra {
namespace {

// Our domains are tiny (10 to 40 bits), where the four rounds of the theory are far too few. The
// chi-square of the images of two adjacent inputs over keys, in standard deviations, for 16 and 64
// values: 4 rounds 74 and 119, 6 rounds 3.3 and 3.0, 8 rounds 0.3 and 0.3 (0.13 us per value).
constexpr int kRounds = 8;

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t key) : n_(n), key_(key) {
  LRA_CHECK_GE(n, 1u);
  const int bits = std::bit_width(n - 1);
  half_bits_ = std::max(1, (bits + 1) / 2);
  half_mask_ = static_cast<uint32_t>((uint64_t{1} << half_bits_) - 1);
}

uint64_t Permutation::encrypt(uint64_t value) const {
  auto left = static_cast<uint32_t>(value >> half_bits_);
  uint32_t right = static_cast<uint32_t>(value) & half_mask_;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t mixed = philox4x32({right, round, 0, 0}, key_)[0] & half_mask_;
    const uint32_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return static_cast<uint64_t>(left) << half_bits_ | right;
}

uint64_t Permutation::operator()(uint64_t i) const {
  LRA_CHECK_LT(i, n_);
  // A cycle that starts inside [0, n) comes back into it: at the latest at its start.
  do i = encrypt(i);
  while (i >= n_);
  return i;
}

}  // namespace lra
