// Layer normalisation of kernels/layer_norm.h on a CUDA device. A warp takes a row.
#include "kernels/cuda.h"
#include "kernels/cuda_launch.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;

__device__ inline float sum_of_warp(float sum) {
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  return sum;
}

__device__ inline int64_t row_of_warp() { return int64_t{blockIdx.x} * kWarps + threadIdx.x / 32; }

template <typename T>
__global__ void forward_kernel(LayerNormForward<T> p) {
  const int64_t row = row_of_warp();
  if (row >= p.rows) return;
  const int lane = threadIdx.x % 32;
  const T* x = p.x + row * p.columns;
  float sum = 0;
  for (int64_t n = lane; n < p.columns; n += 32) sum += float(x[n]);
  const float mean = sum_of_warp(sum) / static_cast<float>(p.columns);
  float squares = 0;
  for (int64_t n = lane; n < p.columns; n += 32)
    squares += (float(x[n]) - mean) * (float(x[n]) - mean);
  const float variance = sum_of_warp(squares) / static_cast<float>(p.columns);
  const float rstd = 1 / sqrtf(variance + static_cast<float>(p.eps));
  for (int64_t n = lane; n < p.columns; n += 32) {
    p.y[row * p.columns + n] = T((float(x[n]) - mean) * rstd * p.gamma[n] + p.beta[n]);
  }
  if (lane != 0) return;
  p.mean[row] = mean;
  p.rstd[row] = rstd;
}

template <typename T>
__global__ void rows_kernel(LayerNormBackward<T> p) {
  const int64_t row = row_of_warp();
  if (row >= p.rows) return;
  const int lane = threadIdx.x % 32;
  const T *grad = p.grad + row * p.columns, *x = p.x + row * p.columns;
  const float mean = p.mean[row], rstd = p.rstd[row];
  float sum = 0, sum_xhat = 0;
  for (int64_t n = lane; n < p.columns; n += 32) {
    const float g = float(grad[n]) * p.gamma[n];
    sum += g;
    sum_xhat += g * (float(x[n]) - mean) * rstd;
  }
  const float count = static_cast<float>(p.columns);
  const float mean_g = sum_of_warp(sum) / count, mean_g_xhat = sum_of_warp(sum_xhat) / count;
  for (int64_t n = lane; n < p.columns; n += 32) {
    const float g = float(grad[n]) * p.gamma[n], xhat = (float(x[n]) - mean) * rstd;
    p.dx[row * p.columns + n] = T(rstd * (g - mean_g - xhat * mean_g_xhat));
  }
}

// Sums over kNormRows rows, a thread for each column: parts [runs, 2, columns].
template <typename T>
__global__ void columns_kernel(LayerNormBackward<T> p, int64_t blocks_of_columns, float* parts) {
  const int64_t run = blockIdx.x / blocks_of_columns;
  const int64_t column = blockIdx.x % blocks_of_columns * kThreads + threadIdx.x;
  if (column >= p.columns) return;
  const int64_t first = run * kNormRows;
  const int64_t end = first + kNormRows < p.rows ? first + kNormRows : p.rows;
  float gamma = 0, beta = 0;
  for (int64_t row = first; row < end; ++row) {
    const float grad = p.grad[row * p.columns + column];
    gamma += grad * (float(p.x[row * p.columns + column]) - p.mean[row]) * p.rstd[row];
    beta += grad;
  }
  parts[2 * run * p.columns + column] = gamma;
  parts[(2 * run + 1) * p.columns + column] = beta;
}

__global__ void runs_kernel(int64_t runs, int64_t columns, const float* parts, float* grad_gamma,
                            float* grad_beta) {
  const int64_t column = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= columns) return;
  float gamma = 0, beta = 0;
  for (int64_t run = 0; run < runs; ++run) {
    gamma += parts[2 * run * columns + column];
    beta += parts[(2 * run + 1) * columns + column];
  }
  grad_gamma[column] = gamma;
  grad_beta[column] = beta;
}

}  // namespace

template <typename T>
void layer_norm_forward(const LayerNormForward<T>& p, Stream stream) {
  launch(forward_kernel<T>, parts_of(p.rows, kWarps), kThreads, 0, stream, p);
}

int64_t layer_norm_scratch(int64_t rows, int64_t columns) {
  return 2 * parts_of(rows, kNormRows) * columns;
}

// dx may be grad, so the sums come first.
template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p, float* scratch, Stream stream) {
  const int64_t runs = parts_of(p.rows, kNormRows), blocks = parts_of(p.columns, kThreads);
  launch(columns_kernel<T>, runs * blocks, kThreads, 0, stream, p, blocks, scratch);
  launch(runs_kernel, blocks, kThreads, 0, stream, runs, p.columns, scratch, p.grad_gamma,
         p.grad_beta);
  launch(rows_kernel<T>, parts_of(p.rows, kWarps), kThreads, 0, stream, p);
}

template void layer_norm_forward<float>(const LayerNormForward<float>&, Stream);
template void layer_norm_forward<Bf16>(const LayerNormForward<Bf16>&, Stream);
template void layer_norm_backward<float>(const LayerNormBackward<float>&, float*, Stream);
template void layer_norm_backward<Bf16>(const LayerNormBackward<Bf16>&, float*, Stream);

}  // namespace lra::kernels::cuda
