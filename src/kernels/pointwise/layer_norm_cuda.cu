// Layer normalization of kernels/pointwise/layer_norm.h on a CUDA device. A warp takes a row.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vectors.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32, kBackwardWarps = 8;
constexpr int64_t kMostInShared = 768;      // columns: 48 KB for the sums of a block's warps
constexpr int kColumns = 32, kGroups = 16;  // of columns and of runs, in a block that adds runs up

__device__ inline float sum_of_warp(float sum) {
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  return sum;
}

__device__ inline int64_t row_of_warp() { return int64_t{blockIdx.x} * kWarps + threadIdx.x / 32; }

// Calls use(n) for the columns n .. n + N - 1 of a row that are this lane's.
template <int N, typename F>
__device__ inline void for_each_vector(int64_t columns, F use) {
  for (int64_t n = N * (threadIdx.x % 32); n < columns; n += 32 * N) use(n);
}

template <typename T, int N>
__global__ void forward_kernel(LayerNormForward<T> p) {
  const int64_t row = row_of_warp();
  if (row >= p.rows) return;
  const T* x = p.x + row * p.columns;
  const float* of_group = p.gamma + row % p.groups * p.columns;
  float sum = 0;
  if (p.centered) {
    for_each_vector<N>(p.columns, [&](int64_t n) {
      float values[N];
      load_floats(values, x + n);
      for (const float value : values) sum += value;
    });
  }
  const float mean = p.centered ? sum_of_warp(sum) / static_cast<float>(p.columns) : 0;
  float squares = 0;
  for_each_vector<N>(p.columns, [&](int64_t n) {
    float values[N];
    load_floats(values, x + n);
    for (const float value : values) squares += (value - mean) * (value - mean);
  });
  const float variance = sum_of_warp(squares) / static_cast<float>(p.columns);
  const float rstd = 1 / sqrtf(variance + static_cast<float>(p.eps));
  for_each_vector<N>(p.columns, [&](int64_t n) {
    float values[N], gamma[N], beta[N] = {};
    load_floats(values, x + n);
    load_floats(gamma, of_group + n);
    if (p.beta != nullptr) load_floats(beta, p.beta + (of_group - p.gamma) + n);
    for (int i = 0; i < N; ++i) values[i] = (values[i] - mean) * rstd * gamma[i] + beta[i];
    store_floats(p.y + row * p.columns + n, values);
  });
  if (threadIdx.x % 32 != 0) return;
  p.mean[row] = mean;
  p.rstd[row] = rstd;
}

// Computes dx of a row and adds its terms to the sums over rows: sums [2, groups, columns], for
// gamma and beta; a lane has the same columns of them as of the row.
template <typename T, int N>
__device__ inline void backward_row(const LayerNormBackward<T>& p, int64_t row, float* sums) {
  const float mean = p.mean[row], rstd = p.rstd[row];
  const int64_t group = row % p.groups * p.columns;
  const float* of_group = p.gamma + group;
  float *gammas = sums + group, *betas = gammas + p.groups * p.columns;
  // Calls use(n, grad, xhat) for the columns n .. n + N - 1. The second time they are in the cache.
  const auto for_each = [&](auto use) {
    for_each_vector<N>(p.columns, [&](int64_t n) {
      float grad[N], xhat[N];
      load_floats(grad, p.grad + row * p.columns + n);
      load_floats(xhat, p.x + row * p.columns + n);
      for (int i = 0; i < N; ++i) xhat[i] = (xhat[i] - mean) * rstd;
      use(n, grad, xhat);
    });
  };
  float sum = 0, sum_xhat = 0;
  for_each([&](int64_t n, const float(&grad)[N], const float(&xhat)[N]) {
    float gamma[N], of_gamma[N], of_beta[N];
    load_floats(gamma, of_group + n);
    load_floats(of_gamma, gammas + n);
    load_floats(of_beta, betas + n);
    for (int i = 0; i < N; ++i) {
      sum += grad[i] * gamma[i];
      sum_xhat += grad[i] * gamma[i] * xhat[i];
      of_gamma[i] += grad[i] * xhat[i];
      of_beta[i] += grad[i];
    }
    store_floats(gammas + n, of_gamma);
    store_floats(betas + n, of_beta);
  });
  const float count = static_cast<float>(p.columns);
  const float mean_g_xhat = sum_of_warp(sum_xhat) / count;
  const float mean_g = p.centered ? sum_of_warp(sum) / count : 0;
  for_each([&](int64_t n, const float(&grad)[N], const float(&xhat)[N]) {
    float gamma[N], dx[N], beside[N] = {};
    load_floats(gamma, of_group + n);
    if (p.beside != nullptr) load_floats(beside, p.beside + row * p.columns + n);
    for (int i = 0; i < N; ++i) {
      dx[i] = beside[i] + rstd * (grad[i] * gamma[i] - mean_g - xhat[i] * mean_g_xhat);
    }
    store_floats(p.dx + row * p.columns + n, dx);
  });
}

// A block takes kNormRows rows. The sums of its warps lie in shared memory and become one of
// parts [runs, 2, groups, columns]; of wide rows they lie in parts [runs, warps, 2, groups,
// columns].
template <typename T, int N>
__global__ void backward_kernel(LayerNormBackward<T> p, bool in_shared, float* parts) {
  auto* shared = reinterpret_cast<float*>(dynamic_shared());
  const int warp = threadIdx.x / 32;
  const int64_t run = blockIdx.x, size = 2 * p.groups * p.columns, first = run * kNormRows;
  const int64_t end = first + kNormRows < p.rows ? first + kNormRows : p.rows;
  float* sums = in_shared ? shared + warp * size : parts + (run * kBackwardWarps + warp) * size;
  for_each_vector<N>(size, [&](int64_t n) {
    const float zeros[N] = {};
    store_floats(sums + n, zeros);
  });
  __syncwarp();
  for (int64_t row = first + warp; row < end; row += kBackwardWarps) {
    backward_row<T, N>(p, row, sums);
  }
  if (!in_shared) return;
  __syncthreads();
  for (int64_t n = threadIdx.x; n < size; n += 32 * kBackwardWarps) {
    float sum = 0;
    for (int other = 0; other < kBackwardWarps; ++other) sum += shared[other * size + n];
    parts[run * size + n] = sum;
  }
}

// Every kGroups-th run is one thread's; then the groups are added in their order.
__global__ void runs_kernel(int64_t runs, int64_t columns, const float* parts, float* grad_gamma,
                            float* grad_beta) {
  auto* sums = reinterpret_cast<float*>(dynamic_shared());  // [kGroups, 2, kColumns]
  const int lane = threadIdx.x % kColumns, group = threadIdx.x / kColumns;
  const int64_t column = int64_t{blockIdx.x} * kColumns + lane;
  float gamma = 0, beta = 0;
  for (int64_t run = group; column < columns && run < runs; run += kGroups) {
    gamma += parts[2 * run * columns + column];
    beta += parts[(2 * run + 1) * columns + column];
  }
  sums[2 * group * kColumns + lane] = gamma;
  sums[(2 * group + 1) * kColumns + lane] = beta;
  __syncthreads();
  if (group != 0 || column >= columns) return;
  for (int other = 1; other < kGroups; ++other) {
    gamma += sums[2 * other * kColumns + lane];
    beta += sums[(2 * other + 1) * kColumns + lane];
  }
  grad_gamma[column] = gamma;
  if (grad_beta != nullptr) grad_beta[column] = beta;
}

// Calls use(constant) with the columns that a lane takes at a time.
template <typename F, typename... Arrays>
void with_vectors(int64_t columns, F use, const Arrays*... arrays) {
  constexpr int kMost = 4;
  if (columns % kMost == 0 && (takes_vectors<kMost>(arrays) && ...)) {
    use(std::integral_constant<int, kMost>());
  } else {
    use(std::integral_constant<int, 1>());
  }
}

}  // namespace

template <typename T>
void layer_norm_forward(const LayerNormForward<T>& p, Stream stream) {
  const auto with = [&](auto n) {
    launch(forward_kernel<T, n>, parts_of(p.rows, kWarps), kThreads, 0, stream, p);
  };
  with_vectors(p.columns, with, p.x, p.gamma, p.beta, p.y);
}

int64_t layer_norm_scratch(int64_t rows, int64_t weights) {
  const int64_t parts = weights <= kMostInShared ? 1 : kBackwardWarps;  // of a run
  return 2 * parts * parts_of(rows, kNormRows) * weights;
}

template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p, float* scratch, Stream stream) {
  const int64_t all = p.groups * p.columns;
  const bool in_shared = all <= kMostInShared;
  const int64_t runs = parts_of(p.rows, kNormRows);
  const size_t shared_bytes =
      in_shared ? 2 * kBackwardWarps * static_cast<size_t>(all) * sizeof(float) : 0;
  const auto with = [&](auto n) {
    launch(backward_kernel<T, n>, runs, 32 * kBackwardWarps, shared_bytes, stream, p, in_shared,
           scratch);
  };
  with_vectors(p.columns, with, p.grad, p.x, p.gamma, p.dx, p.beside, scratch);
  launch(runs_kernel, parts_of(all, kColumns), kGroups * kColumns,
         2 * kGroups * kColumns * sizeof(float), stream, in_shared ? runs : runs * kBackwardWarps,
         all, scratch, p.grad_gamma, p.grad_beta);
}

template void layer_norm_forward<float>(const LayerNormForward<float>&, Stream);
template void layer_norm_forward<Bf16>(const LayerNormForward<Bf16>&, Stream);
template void layer_norm_backward<float>(const LayerNormBackward<float>&, float*, Stream);
template void layer_norm_backward<Bf16>(const LayerNormBackward<Bf16>&, float*, Stream);

}  // namespace lra::kernels::cuda
