// Elementwise passes on a CUDA device: kernels/pointwise.h.
//
// A thread takes eight elements of a group of 128, sixteen apart: they share one block of random
// numbers (base/rng.h), and sixteen threads read neighbours.
#include "base/rng.h"
#include "kernels/cuda.h"
#include "kernels/cuda_launch.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 256, kGroup = 128, kApart = 16;
constexpr float kSqrt2OverPi = 0.7978845608028654f, kCubic = 0.044715f;

struct Decisions {
  uint64_t key = 0;
  int64_t first_row = 0;
  uint32_t threshold = 0;
  float scale = 1;
};

Decisions decisions_of(const Dropout& dropout) {
  check_dropout(dropout);
  return {dropout.key, dropout.first_row, dropout_threshold(dropout.rate),
          dropout_scale(dropout.rate)};
}

__device__ inline float gelu(float x) {
  const float u = kSqrt2OverPi * (x + kCubic * x * x * x);
  return 0.5f * x * (1 + tanhf(u));
}

__device__ inline float gelu_derivative(float x) {
  // 0 or 1 beyond; the cube of a large x would overflow. NaN stays NaN.
  x = x < -10 ? -10.0f : x > 10 ? 10.0f : x;
  const float tanh_u = tanhf(kSqrt2OverPi * (x + kCubic * x * x * x));
  const float du = kSqrt2OverPi * (1 + 3 * kCubic * x * x);
  return 0.5f * (1 + tanh_u + x * (1 - tanh_u * tanh_u) * du);
}

// Calls use(n, factor) for every element, with what dropout multiplies it with.
template <typename F>
__global__ void elements_kernel(int64_t count, Decisions d, F use) {
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t group = thread / kApart, first = group * kGroup + thread % kApart;
  if (first >= count) return;
  PhiloxBlock random{};
  if (d.threshold != 0) {
    constexpr int64_t kGroupsOfRow = kDropoutRowLength / kGroup;
    const auto row = static_cast<uint32_t>(d.first_row + group / kGroupsOfRow);
    const auto counter = static_cast<uint32_t>(group % kGroupsOfRow * kApart + thread % kApart);
    random = philox4x32({counter, row, 0, 0}, d.key);
  }
#pragma unroll
  for (int n = 0; n < kGroup / kApart; ++n) {
    const int64_t index = first + n * kApart;
    if (index >= count) return;
    const uint32_t value = n % 2 == 0 ? random[n / 2] & 0xFFFF : random[n / 2] >> 16;
    use(index, d.threshold == 0 ? 1.0f : value < d.threshold ? 0.0f : d.scale);
  }
}

template <typename F>
void for_each_element(int64_t count, const Dropout& dropout, F use, Stream stream) {
  launch(elements_kernel<F>, parts_of(parts_of(count, kGroup) * kApart, kThreads), kThreads, 0,
         stream, count, decisions_of(dropout), use);
}

// What the passes do with one element: objects, as a kernel takes no functions.
template <typename T>
struct GeluDropout {
  const T* x;
  T* y;
  __device__ void operator()(int64_t n, float factor) const { y[n] = T(factor * gelu(x[n])); }
};

template <typename T>
struct GeluDropoutBackward {
  const T *x, *dy;
  T *dx, *y;
  __device__ void operator()(int64_t n, float factor) const {
    const float value = x[n], grad = dy[n];
    if (y != nullptr) y[n] = T(factor * gelu(value));
    dx[n] = T(factor * grad * gelu_derivative(value));
  }
};

template <typename T>
struct DropoutAdd {
  const T *residual, *x;
  T* y;
  __device__ void operator()(int64_t n, float factor) const {
    y[n] = T(float(residual[n]) + factor * float(x[n]));
  }
};

template <typename T>
struct ApplyDropout {
  const T* x;
  T* y;
  __device__ void operator()(int64_t n, float factor) const { y[n] = T(factor * float(x[n])); }
};

}  // namespace

template <typename T>
void gelu_dropout(int64_t count, const T* x, T* y, const Dropout& dropout, Stream stream) {
  for_each_element(count, dropout, GeluDropout<T>{x, y}, stream);
}

template <typename T>
void gelu_dropout_backward(int64_t count, const T* x, const T* dy, T* dx, T* y,
                           const Dropout& dropout, Stream stream) {
  for_each_element(count, dropout, GeluDropoutBackward<T>{x, dy, dx, y}, stream);
}

template <typename T>
void dropout_add(int64_t count, const T* residual, const T* x, T* y, const Dropout& dropout,
                 Stream stream) {
  for_each_element(count, dropout, DropoutAdd<T>{residual, x, y}, stream);
}

template <typename T>
void apply_dropout(int64_t count, const T* x, T* y, const Dropout& dropout, Stream stream) {
  for_each_element(count, dropout, ApplyDropout<T>{x, y}, stream);
}

#define LRA_INSTANTIATE(T)                                                                    \
  template void gelu_dropout<T>(int64_t, const T*, T*, const Dropout&, Stream);               \
  template void gelu_dropout_backward<T>(int64_t, const T*, const T*, T*, T*, const Dropout&, \
                                         Stream);                                             \
  template void dropout_add<T>(int64_t, const T*, const T*, T*, const Dropout&, Stream);      \
  template void apply_dropout<T>(int64_t, const T*, T*, const Dropout&, Stream);
LRA_INSTANTIATE(float)
LRA_INSTANTIATE(Bf16)
#undef LRA_INSTANTIATE

}  // namespace lra::kernels::cuda
