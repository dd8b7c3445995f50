// The recurrence of kernels/scan/diagonal_scan.h on a CUDA device, one direction a launch. Some
// lanes of a warp share a channel of an example: each has M of its states in registers and walks
// along the sequence, and every step ends in a sum over these lanes. Positions come through shared
// memory, kSteps at a time.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/vectors.h"
#include "kernels/scan/scan_cuda_lanes.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kSteps = 32;

// A direction: where it begins, and whether position l sees itself.
struct Walk {
  const float* c;  // [planes, modes, channels]
  bool backward;
  bool sees_itself;
  bool adds;  // to y, instead of writing it
};

template <typename T>
struct Sequence {
  DiagonalScan<T> p;
  int64_t example, channel;  // of the first lane of the block
  int64_t valid;             // positions that are not padding

  __device__ int64_t index(int64_t position, int64_t of_block) const {
    return (example * p.length + position) * p.channels + channel + of_block;
  }
};

// The states of a lane.
template <int M>
struct Modes {
  float a[2][M], c[2][M], s[2][M];

  template <typename T>
  __device__ Modes(const DiagonalScan<T>& p, const float* of_c, int64_t channel, int first,
                   int stride) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const int64_t mode = first + m * stride;
      for (int plane = 0; plane < 2; ++plane) {
        const bool is_there = mode < p.modes && plane < p.planes && channel < p.channels;
        const int64_t at = (plane * p.modes + mode) * p.channels + channel;
        a[plane][m] = is_there ? p.a[at] : 0;
        c[plane][m] = is_there ? of_c[at] : 0;
        s[plane][m] = 0;
      }
    }
  }

  __device__ void step(float x) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const float re = s[0][m], im = s[1][m];
      s[0][m] = fmaf(a[0][m], re, fmaf(-a[1][m], im, x));
      s[1][m] = fmaf(a[0][m], im, a[1][m] * re);
    }
  }

  // Re sum_n c_n s_n over the lane's own.
  __device__ float output() const {
    float sum = 0;
#pragma unroll
    for (int m = 0; m < M; ++m) sum = fmaf(c[0][m], s[0][m], fmaf(-c[1][m], s[1][m], sum));
    return sum;
  }
};

template <typename T, int M>
__global__ void scan_kernel(DiagonalScan<T> p, Walk walk, int lanes, float* y) {
  auto* tile = reinterpret_cast<float*>(dynamic_shared());  // [kSteps, channels]
  const int channels = kScanThreads / lanes, own = static_cast<int>(threadIdx.x) / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t groups = parts_of(p.channels, channels);
  const Sequence<T> at{p, blockIdx.x / groups, blockIdx.x % groups * channels,
                       p.lengths ? p.lengths[blockIdx.x / groups] : p.length};
  const int64_t channel = at.channel + own;
  Modes<M> modes(p, walk.c, channel, lane, lanes);
  // Padding is written by the first direction, and read by none.
  for_each_place(walk.adds ? 0 : p.length - at.valid, channels, [&](int64_t row, int of_block) {
    if (at.channel + of_block < p.channels) y[at.index(at.valid + row, of_block)] = 0;
  });
  for (int64_t first = 0; first < at.valid; first += kSteps) {
    const int steps = at.valid - first < kSteps ? static_cast<int>(at.valid - first) : kSteps;
    const auto position = [&](int64_t step) {
      return walk.backward ? at.valid - 1 - first - step : first + step;
    };
    __syncthreads();  // the tile before
    for_each_place(steps, channels, [&](int64_t step, int of_block) {
      const bool is_there = at.channel + of_block < p.channels;
      tile[step * channels + of_block] =
          is_there ? static_cast<float>(p.x[at.index(position(step), of_block)]) : 0;
    });
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
      const float x = tile[step * channels + own];
      if (walk.sees_itself) modes.step(x);
      const float of_lane = modes.output();
      if (!walk.sees_itself) modes.step(x);
      const float sum = sum_of_lanes(of_lane, lanes);
      if (lane != 0 || channel >= p.channels) continue;
      const int64_t to = at.index(position(step), own);
      if (walk.adds) {
        y[to] += sum;
      } else {
        y[to] = p.skip ? fmaf(p.skip[channel], x, sum) : sum;
      }
    }
  }
}

template <typename T>
void scan(const DiagonalScan<T>& p, const Walk& walk, float* y, Stream stream) {
  // Eight states in a lane keep its pipelines full.
  with_lanes<1, 2, 4, 8, 32>(p.modes, 8, [&](auto m, int lanes) {
    const int channels = kScanThreads / lanes;
    launch(scan_kernel<T, m>, p.batch * parts_of(p.channels, channels), kScanThreads,
           sizeof(float) * kSteps * static_cast<size_t>(channels), stream, p, walk, lanes, y);
  });
}

}  // namespace

template <typename T>
void diagonal_scan(const DiagonalScan<T>& p, bool transposed, float* y, Stream stream) {
  for (int64_t direction = 0; direction < p.directions; ++direction) {
    const bool is_first = direction == 0;
    const Walk walk{p.c + direction * p.planes * p.modes * p.channels, is_first == transposed,
                    is_first, !is_first};
    scan(p, walk, y, stream);
  }
}

template void diagonal_scan(const DiagonalScan<float>&, bool, float*, Stream);
template void diagonal_scan(const DiagonalScan<Bf16>&, bool, float*, Stream);

}  // namespace lra::kernels::cuda
