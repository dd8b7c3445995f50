// Gradients that many blocks or threads have shares in. Included only by *.cu files.
#pragma once

#include "kernels/cuda/launch.h"

namespace lra::kernels::cuda {

constexpr int kSumThreads = 256;

template <typename T>
__global__ void sum_shares_kernel(int64_t shares, int64_t count, const float* from, T* to) {
  const int64_t n = int64_t{blockIdx.x} * kSumThreads + threadIdx.x;
  if (n >= count) return;
  float sum = 0;
  for (int64_t share = 0; share < shares; ++share) sum += from[share * count + n];
  to[n] = T(sum);
}

// to[n] = the sum of the shares [shares, count], in their order.
template <typename T>
void sum_shares(int64_t shares, int64_t count, const float* from, T* to, Stream stream) {
  launch(sum_shares_kernel<T>, parts_of(count, kSumThreads), kSumThreads, 0, stream, shares, count,
         from, to);
}

}  // namespace lra::kernels::cuda
