// Attention to two sets of keys, in one softmax, from attention to each: on a CUDA device. A warp
// takes a row of a head.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vectors.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

template <typename T, int N>
__global__ void merge_kernel(AttentionMerge<T> p) {
  const int64_t rows = p.batch * p.heads * p.length;
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;  // in [B, H, L]
  if (row >= rows) return;
  const float largest = p.softmax[row], sum = p.softmax[rows + row];
  const float of_part = p.part_softmax[row];
  const float joint = fmaxf(largest, of_part);
  // A row that sees no key is scaled by neither: all of it is 0.
  const auto factor = [&](float own) {
    return joint == -INFINITY ? 1 : expf((own - joint) * p.scale);
  };
  const float added = factor(of_part) * p.part_softmax[rows + row];
  const float both = factor(largest) * sum + added;
  const float weight = both == 0 ? 0 : added / both;
  const int64_t l = row % p.length, head = row / p.length % p.heads,
                example = row / p.length / p.heads;
  const int64_t first = ((example * p.length + l) * p.heads + head) * p.width;
  for (int64_t e = N * (threadIdx.x % 32); e < p.width; e += 32 * N) {
    float out[N], part[N];
    load_floats(out, p.out + first + e);
    load_floats(part, p.part_out + first + e);
#pragma unroll
    for (int n = 0; n < N; ++n) out[n] += weight * (part[n] - out[n]);
    store_floats(p.out + first + e, out);
  }
  __syncwarp();
  if (threadIdx.x % 32 != 0) return;
  p.softmax[row] = joint;
  p.softmax[rows + row] = both;
}

}  // namespace

template <typename T>
void merge_attention(const AttentionMerge<T>& p, Stream stream) {
  const int64_t blocks = parts_of(p.batch * p.heads * p.length, kWarps);
  const bool by_two = p.width % 2 == 0 && takes_vectors<2>(p.out) && takes_vectors<2>(p.part_out);
  launch(by_two ? merge_kernel<T, 2> : merge_kernel<T, 1>, blocks, kThreads, 0, stream, p);
}

template void merge_attention<float>(const AttentionMerge<float>&, Stream);
template void merge_attention<Bf16>(const AttentionMerge<Bf16>&, Stream);

}  // namespace lra::kernels::cuda
