// The optimizer's passes on a CUDA device: kernels/adam/adam.h.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/warp.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kChunk = 8192;  // elements of one block's sum

// AdamStep with the factors that do not depend on the element.
struct Factors {
  float rate, beta1, beta2, rest1, rest2, correction1, correction2, epsilon, decay, grad_scale;
};

__global__ void adam_kernel(int64_t count, float* parameters, const float* gradients, float* m,
                            float* v, Factors f, const double* norm, double clip_norm) {
  const int64_t n = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= count) return;
  float scale = f.grad_scale;
  if (norm != nullptr && *norm > clip_norm) scale *= static_cast<float>(clip_norm / *norm);
  const float gradient = scale * gradients[n], parameter = parameters[n];
  const float new_m = f.beta1 * m[n] + f.rest1 * gradient;
  const float new_v = f.beta2 * v[n] + f.rest2 * gradient * gradient;
  m[n] = new_m;
  v[n] = new_v;
  parameters[n] = parameter -
                  f.rate * (f.correction1 * new_m) / (sqrtf(f.correction2 * new_v) + f.epsilon) -
                  f.decay * parameter;
}

// Sum over the block, in a fixed order; the result is thread 0's. Needs 32 doubles of shared
// memory.
__device__ inline double sum_of_block(double sum) {
  auto* of_warps = reinterpret_cast<double*>(dynamic_shared());
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
  __syncthreads();
  double total = 0;
  if (threadIdx.x == 0) {
    for (int n = 0; n < kThreads / 32; ++n) total += of_warps[n];
  }
  return total;
}

__global__ void squares_kernel(int64_t count, const float* x, double* parts) {
  const int64_t first = int64_t{blockIdx.x} * kChunk;
  const int64_t end = first + kChunk < count ? first + kChunk : count;
  double sum = 0;
  for (int64_t n = first + threadIdx.x; n < end; n += kThreads) {
    const double value = x[n];
    sum += value * value;
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void norm_kernel(int64_t count, const double* parts, double* norm) {
  double sum = 0;
  for (int64_t n = threadIdx.x; n < count; n += kThreads) sum += parts[n];
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) *norm = sqrt(sum);
}

}  // namespace

void adam_step(int64_t count, float* parameters, const float* gradients, float* m, float* v,
               const AdamStep& step, const double* norm, double clip_norm, Stream stream) {
  check_adam_step(step);
  const auto steps = static_cast<double>(step.step + 1);
  const auto to_float = [](double x) { return static_cast<float>(x); };
  const Factors factors{
      .rate = to_float(step.learning_rate),
      .beta1 = to_float(step.beta1),
      .beta2 = to_float(step.beta2),
      .rest1 = to_float(1 - step.beta1),
      .rest2 = to_float(1 - step.beta2),
      .correction1 = to_float(1 / (1 - std::pow(step.beta1, steps))),
      .correction2 = to_float(1 / (1 - std::pow(step.beta2, steps))),
      .epsilon = to_float(step.epsilon),
      .decay = to_float(step.learning_rate * step.weight_decay),
      .grad_scale = to_float(step.grad_scale),
  };
  launch(adam_kernel, parts_of(count, kThreads), kThreads, 0, stream, count, parameters, gradients,
         m, v, factors, norm, clip_norm);
}

int64_t sum_of_squares_parts(int64_t count) { return parts_of(count, kChunk); }

void gradient_norm(int64_t count, const float* x, double* scratch, double* norm, Stream stream) {
  constexpr size_t kBytes = 32 * sizeof(double);
  const int64_t parts = sum_of_squares_parts(count);
  launch(squares_kernel, parts, kThreads, kBytes, stream, count, x, scratch);
  launch(norm_kernel, 1, kThreads, kBytes, stream, parts, scratch, norm);
}

}  // namespace lra::kernels::cuda
