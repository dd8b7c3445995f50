// Sinkhorn normalization on a CUDA device: a block takes a matrix through all iterations. Its
// logits are in the cache after the first of them.
#include <cfloat>
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/warp.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

// The numbers that ops/sinkhorn.cpp explains.
constexpr float kHidden = -1e30F, kLeast = 2e-35F;

struct Matrix {
  __device__ explicit Matrix(const SinkhornMatrices& p)
      : size(p.size),
        logits(p.logits + blockIdx.x * size * size),
        valid(p.valid == nullptr ? nullptr : p.valid + blockIdx.x / p.heads * size) {}

  __device__ bool has(int64_t line) const { return valid == nullptr || valid[line]; }
  __device__ float at(int64_t i, int64_t j) const {
    return has(i) && has(j) ? logits[i * size + j] : kHidden;
  }
  __device__ float normalized(int64_t i, int64_t j, float rows, float columns) const {
    const float value = expf(at(i, j) - rows - columns);
    return value <= kLeast ? 0 : value;
  }

  const int64_t size;
  const float* const logits;
  const bool* const valid;
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// to[i] = of_line(i, reduce) for each row, 0 for an invalid one, where reduce(start, term, join)
// joins term(i, j) over the row. A warp takes a row.
template <typename F>
__device__ inline void for_each_row(const Matrix& m, float* to, F of_line) {
  const int64_t lane = threadIdx.x % 32;
  for (int64_t i = threadIdx.x / 32; i < m.size; i += kWarps) {
    const float result = of_line(i, [&](float value, auto term, auto join) {
      for (int64_t j = lane; j < m.size; j += 32) value = join(value, term(i, j));
      for (int distance = 16; distance > 0; distance /= 2) {
        value = join(value, __shfl_xor_sync(~0u, value, distance));
      }
      return value;
    });
    if (lane == 0) to[i] = m.has(i) ? result : 0;
  }
  __syncthreads();
}

// The same for columns: a lane takes a column, and the warps its rows.
template <typename F>
__device__ inline void for_each_column(const Matrix& m, float* to, F of_line) {
  auto* shares = reinterpret_cast<float*>(dynamic_shared());  // [kWarps, 32]
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int64_t j = lane; j - lane < m.size; j += 32) {
    const float result = of_line(j, [&](float start, auto term, auto join) {
      float value = start;
      for (int64_t i = warp; j < m.size && i < m.size; i += kWarps) {
        value = join(value, term(i, j));
      }
      shares[threadIdx.x] = value;
      __syncthreads();
      value = start;
      for (int other = 0; other < kWarps; ++other) {
        value = join(value, shares[other * 32 + lane]);
      }
      __syncthreads();
      return value;
    });
    if (warp == 0 && j < m.size) to[j] = m.has(j) ? result : 0;
  }
  __syncthreads();
}

// The vectors of this block's matrix in an array [2, planes, size].
struct Vectors {
  __device__ Vectors(const SinkhornMatrices& p, float* all)
      : rows(all + blockIdx.x * p.size), columns(rows + p.planes * p.size) {}

  float *rows, *columns;
};
__device__ inline Vectors scalings_of(const SinkhornMatrices& p, int64_t iteration) {
  return Vectors(p, p.scalings + 2 * iteration * p.planes * p.size);
}

__global__ void sinkhorn_kernel(SinkhornMatrices p, float* matrix) {
  const Matrix m(p);
  // of_line for the logarithm of the sum of exp(term) over a line.
  const auto log_sum = [](auto term) {
    return [term](int64_t, auto reduce) {
      const float most = reduce(-FLT_MAX, term, Largest());
      const auto share = [&](int64_t i, int64_t j) { return expf(term(i, j) - most); };
      return most + logf(reduce(0, share, Sum()));
    };
  };
  const float* before = nullptr;
  for (int64_t n = 0; n < p.iterations; ++n) {
    const Vectors now = scalings_of(p, n);
    for_each_row(m, now.rows, log_sum([&](int64_t i, int64_t j) {
                   return m.at(i, j) - (n > 0 ? before[j] : 0);
                 }));
    for_each_column(m, now.columns,
                    log_sum([&](int64_t i, int64_t j) { return m.at(i, j) - now.rows[i]; }));
    before = now.columns;
  }
  const Vectors last = scalings_of(p, p.iterations - 1);
  for (int64_t n = threadIdx.x; n < m.size * m.size; n += kThreads) {
    const int64_t i = n / m.size, j = n % m.size;
    matrix[blockIdx.x * m.size * m.size + n] = m.normalized(i, j, last.rows[i], last.columns[j]);
  }
}

// The gradient of a logarithm of a sum of exponentials is the matrix normalized along that line,
// computed again from the vectors of each iteration.
__global__ void sinkhorn_backward_kernel(SinkhornMatrices p, const float* grad, float* scratch,
                                         float* grad_logits) {
  const Matrix m(p);
  const Vectors of(p, scratch);
  const float* const from = grad + blockIdx.x * m.size * m.size;
  float* const to = grad_logits + blockIdx.x * m.size * m.size;
  const Vectors last = scalings_of(p, p.iterations - 1);
  for_each_row(m, of.rows, [&](int64_t, auto reduce) {
    const auto term = [&](int64_t i, int64_t j) {
      const int64_t n = i * m.size + j;
      return to[n] = from[n] * m.normalized(i, j, last.rows[i], last.columns[j]);
    };
    return -reduce(0, term, Sum());
  });
  for_each_column(m, of.columns, [&](int64_t, auto reduce) {
    return -reduce(
        0, [&](int64_t i, int64_t j) { return to[i * m.size + j]; }, Sum());
  });
  for (int64_t n = p.iterations - 1; n >= 0; --n) {
    const Vectors now = scalings_of(p, n);
    const float* const before = n > 0 ? scalings_of(p, n - 1).columns : nullptr;
    const auto by_columns = [&](int64_t i, int64_t j) {
      return m.normalized(i, j, now.rows[i], now.columns[j]) * of.columns[j];
    };
    for_each_row(m, of.rows, [&](int64_t i, auto reduce) {
      const float direct = n == p.iterations - 1 ? of.rows[i] : 0;
      return direct - reduce(0, by_columns, Sum());
    });
    for_each_column(m, of.columns, [&](int64_t, auto reduce) {
      const auto by_rows = [&](int64_t i, int64_t j) {
        const float share = m.normalized(i, j, now.rows[i], n > 0 ? before[j] : 0) * of.rows[i];
        to[i * m.size + j] += by_columns(i, j) + share;
        return share;
      };
      return -reduce(0, by_rows, Sum());
    });
  }
}

}  // namespace

void sinkhorn_forward(const SinkhornMatrices& p, float* matrix, Stream stream) {
  launch(sinkhorn_kernel, p.planes, kThreads, kThreads * sizeof(float), stream, p, matrix);
}

void sinkhorn_backward(const SinkhornMatrices& p, const float* grad, float* scratch,
                       float* grad_logits, Stream stream) {
  launch(sinkhorn_backward_kernel, p.planes, kThreads, kThreads * sizeof(float), stream, p, grad,
         scratch, grad_logits);
}

}  // namespace lra::kernels::cuda
