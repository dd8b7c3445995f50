// Several neighbouring values at a time: fewer accesses to memory, each larger. Included by *.cu
// files alone.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/warp.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels::cuda {

template <typename T, int N>
struct alignas(N * sizeof(T)) Vector {
  T values[N];
};

// True if an array is aligned for reading and writing it as vectors of N.
template <int N, typename T>
bool takes_vectors(const T* array) {
  return reinterpret_cast<uintptr_t>(array) % sizeof(Vector<T, N>) == 0;
}

template <int N, typename T>
__device__ inline Vector<T, N> load_vector(const T* from) {
  return *reinterpret_cast<const Vector<T, N>*>(from);
}

template <int N, typename T>
__device__ inline void load_floats(float (&to)[N], const T* from) {
  const auto vector = load_vector<N>(from);
#pragma unroll
  for (int n = 0; n < N; ++n) to[n] = vector.values[n];
}

template <int N, typename T>
__device__ inline void store_floats(T* to, const float (&from)[N]) {
  Vector<T, N> vector;
  if constexpr (std::is_same_v<T, Bf16> && N % 2 == 0) {
    Vector<uint32_t, N / 2> words;
#pragma unroll
    for (int n = 0; n < N / 2; ++n) words.values[n] = pack_bf16(from[2 * n], from[2 * n + 1]);
    vector = std::bit_cast<Vector<T, N>>(words);
  } else {
#pragma unroll
    for (int n = 0; n < N; ++n) vector.values[n] = T(from[n]);
  }
  *reinterpret_cast<Vector<T, N>*>(to) = vector;
}

}  // namespace lra::kernels::cuda
