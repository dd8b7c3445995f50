// Groups of neighboring channels that move along the sequence by different numbers of positions.
#pragma once

#include <cstdint>
#include <vector>

namespace lra::kernels {

// The channels of a row, cut into tracks: track m has the numbers [first[m], first[m + 1]).
struct Rotation {
  int64_t batch = 0, length = 0;
  std::vector<int64_t> first, offsets;  // [tracks + 1], [tracks]
  // [batch], in [0, length]: positions from there on are padding, which stays where it is. Null:
  // none.
  const int32_t* lengths = nullptr;
};

// to[b, p, track m] = from[b, (p + offsets[m]) mod N, track m] for the N = lengths[b] positions of
// an example; offsets may be negative. Arrays [batch, length, first.back()]; the numbers are
// copied, so T may be of any type of their size: uint16_t, uint32_t or uint64_t.
template <typename T>
void rotate(const Rotation& p, const T* from, T* to);

}  // namespace lra::kernels
