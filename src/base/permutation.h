// A keyed permutation of [0, n) in O(1) memory: shuffles that need no table and can be entered at
// any position, so a resumed run continues in the middle of an epoch.
//
// A balanced Feistel network (Luby and Rackoff, 1988) on the smallest even number of bits that
// holds n, with Philox as round function, and cycle walking (Black and Rogaway, 2002) back into
// [0, n): under four trips are expected, since the network covers less than 4n values.
#pragma once

#include <cstdint>

namespace lra {

class Permutation {
 public:
  // n >= 1.
  Permutation(uint64_t n, uint64_t key);

  // The image of i < n.
  uint64_t operator()(uint64_t i) const;
  uint64_t size() const { return n_; }

 private:
  uint64_t encrypt(uint64_t value) const;

  uint64_t n_, key_;
  int half_bits_;
  uint32_t half_mask_;
};

}  // namespace lra
