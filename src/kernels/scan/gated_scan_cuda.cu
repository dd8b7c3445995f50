// The recurrence of kernels/scan/gated_scan.h on a CUDA device. A thread takes a channel of an
// example along the whole sequence. Rows are read kRows at a time, before the first of them is
// needed: what a step waits for is arithmetic, not memory.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace lra::kernels::cuda {
namespace {

// Blocks are small, so that few sequences still reach many processors.
constexpr int kGatedThreads = 32, kRows = 16;

// A thread's channel of an example.
template <typename T>
struct GatedChannel {
  __device__ explicit GatedChannel(const GatedScan<T>& p)
      : example(blockIdx.x / parts_of(p.channels, kGatedThreads)),
        channel(blockIdx.x % parts_of(p.channels, kGatedThreads) * kGatedThreads + threadIdx.x),
        length(p.lengths == nullptr ? p.length : p.lengths[example]),
        channels(p.channels),
        first(example * p.length * channels + channel),
        reversed(channel >= channels - p.reversed_channels) {}

  __device__ bool is_there() const { return channel < channels; }
  // The place of a time in the arrays; times from `length` on are padding.
  __device__ int64_t at(int64_t time) const {
    return first + (reversed && time < length ? length - 1 - time : time) * channels;
  }

  const int64_t example, channel, length, channels, first;
  const bool reversed;
};

template <typename T>
__global__ void gated_forward_kernel(GatedScan<T> p, T* h) {
  const GatedChannel<T> own(p);
  if (!own.is_there()) return;
  float state = 0;
  for (int64_t begin = 0; begin < own.length; begin += kRows) {
    const int64_t left = own.length - begin;
    float a[kRows], v[kRows];
#pragma unroll
    for (int n = 0; n < kRows; ++n) {
      if (n >= left) break;
      a[n] = p.a[own.at(begin + n)];
      v[n] = static_cast<float>(p.v[own.at(begin + n)]);
    }
#pragma unroll
    for (int n = 0; n < kRows; ++n) {
      if (n >= left) break;
      state = fmaf(a[n], state, v[n]);
      h[own.at(begin + n)] = T(state);
    }
  }
  for (int64_t t = own.length; t < p.length; ++t) h[own.at(t)] = T(0.0f);
}

template <typename T>
__global__ void gated_backward_kernel(GatedScanBackward<T> problem) {
  const GatedScan<T>& p = problem.problem;
  const GatedChannel<T> own(p);
  if (!own.is_there()) return;
  float later = 0;  // a[t + 1] r[t + 1]
  for (int64_t end = own.length; end > 0; end -= kRows) {
    float a[kRows], grad[kRows], before[kRows];
#pragma unroll
    for (int n = 0; n < kRows; ++n) {
      const int64_t t = end - 1 - n;
      if (t < 0) break;
      a[n] = p.a[own.at(t)];
      grad[n] = static_cast<float>(problem.grad[own.at(t)]);
      before[n] = t > 0 ? static_cast<float>(problem.h[own.at(t - 1)]) : 0;
    }
#pragma unroll
    for (int n = 0; n < kRows; ++n) {
      const int64_t t = end - 1 - n;
      if (t < 0) break;
      const float r = grad[n] + later;
      problem.grad_v[own.at(t)] = T(r);
      problem.grad_a[own.at(t)] = r * before[n];
      later = a[n] * r;
    }
  }
  for (int64_t t = own.length; t < p.length; ++t) {
    problem.grad_v[own.at(t)] = T(0.0f);
    problem.grad_a[own.at(t)] = 0;
  }
}

template <typename T>
int64_t blocks_of(const GatedScan<T>& p) {
  LRA_CHECK(p.reversed_channels >= 0 && p.reversed_channels <= p.channels);
  return p.batch * parts_of(p.channels, kGatedThreads);
}

}  // namespace

template <typename T>
void gated_scan_forward(const GatedScan<T>& p, T* h, Stream stream) {
  launch(gated_forward_kernel<T>, blocks_of(p), kGatedThreads, 0, stream, p, h);
}

template <typename T>
void gated_scan_backward(const GatedScanBackward<T>& problem, Stream stream) {
  launch(gated_backward_kernel<T>, blocks_of(problem.problem), kGatedThreads, 0, stream, problem);
}

template void gated_scan_forward(const GatedScan<float>&, float*, Stream);
template void gated_scan_forward(const GatedScan<Bf16>&, Bf16*, Stream);
template void gated_scan_backward(const GatedScanBackward<float>&, Stream);
template void gated_scan_backward(const GatedScanBackward<Bf16>&, Stream);

}  // namespace lra::kernels::cuda
