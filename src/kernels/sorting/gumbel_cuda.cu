// Gumbel noise on a CUDA device. A thread takes four columns of a row: they share a block of random
// numbers.
#include <cmath>

#include "base/rng.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWords = 4;

__global__ void gumbel_kernel(int64_t rows, int64_t columns, uint64_t key, float* noise) {
  const int64_t groups = (columns + kWords - 1) / kWords;
  const int64_t index = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t row = index / groups, group = index % groups;  // of all planes
  if (row >= rows) return;
  const auto plane = static_cast<uint32_t>(row / columns),
             in_plane = static_cast<uint32_t>(row % columns);
  const PhiloxBlock random = philox4x32({static_cast<uint32_t>(group), 0, plane, in_plane}, key);
  for (int n = 0; n < kWords && group * kWords + n < columns; ++n) {
    const double uniform = (random[n] + 0.5) * 0x1p-32;
    noise[row * columns + group * kWords + n] = static_cast<float>(-log(-log(uniform)));
  }
}

}  // namespace

void gumbel_noise(int64_t planes, int64_t blocks, uint64_t key, float* noise, Stream stream) {
  const int64_t rows = planes * blocks;
  launch(gumbel_kernel, parts_of(rows * parts_of(blocks, kWords), kThreads), kThreads, 0, stream,
         rows, blocks, key, noise);
}

}  // namespace lra::kernels::cuda
