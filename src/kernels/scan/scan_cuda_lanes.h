// The use of a block by scans on a CUDA device: some lanes of a warp share a channel, and each has
// some of its states in registers. Included only by *.cu files.
#pragma once

#include <type_traits>

#include "kernels/cuda/launch.h"

namespace lra::kernels::cuda {

constexpr int kScanThreads = 128;  // of a block, which has kScanThreads / lanes channels

// Calls use(M) with the first of these sizes that holds `count` states.
template <int kSize, int... kLarger, typename F>
auto with_states_of_lane(int64_t count, const F& use) {
  if constexpr (sizeof...(kLarger) > 0) {
    if (count > kSize) return with_states_of_lane<kLarger...>(count, use);
  }
  LRA_CHECK_LE(count, kSize);
  return use(std::integral_constant<int, kSize>());
}

// Calls use(M, lanes), M one of kSizes: as many lanes as leave each at most `wanted` of a channel's
// states. Only a warp of 32 has to take more.
template <int... kSizes, typename F>
auto with_lanes(int64_t states, int64_t wanted, const F& use) {
  int lanes = 1;
  while (lanes < 32 && lanes * wanted < states) lanes *= 2;
  return with_states_of_lane<kSizes...>(parts_of(states, lanes),
                                        [&](auto m) { return use(m, lanes); });
}

// The sum over the lanes of a channel, in each of them.
__device__ inline float sum_of_lanes(float sum, int lanes) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(~0u, sum, distance);
  }
  return sum;
}

// Calls use(row, column) for all places of `rows` rows; the width is a power of two.
template <typename F>
__device__ inline void for_each_place(int64_t rows, int width, const F& use) {
  const int thread = static_cast<int>(threadIdx.x);
  const int across = width < kScanThreads ? width : kScanThreads;
  for (int64_t row = thread / across; row < rows; row += kScanThreads / across) {
    for (int column = thread % across; column < width; column += across) use(row, column);
  }
}

}  // namespace lra::kernels::cuda
