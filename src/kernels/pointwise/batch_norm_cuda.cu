// Batch normalization of kernels/pointwise/batch_norm.h on a CUDA device. A block takes kColumns
// columns of a slice of kBatchNormRows rows, each of its kLanes lanes every kLanes-th row. Lanes
// are added in their order, slices in that of their groups, in double.
#include <type_traits>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/warp.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kColumns = 32, kLanes = 8, kThreads = kColumns * kLanes, kGroups = 16;

__device__ inline int column_in_block() { return static_cast<int>(threadIdx.x) % kColumns; }
__device__ inline int lane_in_block() { return static_cast<int>(threadIdx.x) / kColumns; }

// The sums of every column over the `kParts` parts of a block, for all its threads.
template <int kParts, int N, typename W>
__device__ inline void add_up(W (&sums)[N]) {
  auto* shared = reinterpret_cast<W*>(dynamic_shared());  // [kParts, N, kColumns]
  __syncthreads();                                        // what was there before has been read
  for (int n = 0; n < N; ++n)
    shared[(lane_in_block() * N + n) * kColumns + column_in_block()] = sums[n];
  __syncthreads();
  for (int n = 0; n < N; ++n) {
    sums[n] = 0;
    for (int part = 0; part < kParts; ++part) {
      sums[n] += shared[(part * N + n) * kColumns + column_in_block()];
    }
  }
}

template <int kParts, int N, typename W>
constexpr size_t bytes_to_add_up() {
  return sizeof(W) * kParts * N * kColumns;
}

// The rows and the column of a thread.
struct Slice {
  int64_t number, first, end, column;
  bool is_there;

  __device__ Slice(int64_t rows, int64_t columns) {
    const int64_t tiles = parts_of(columns, kColumns);
    number = blockIdx.x / tiles;
    first = number * kBatchNormRows;
    end = first + kBatchNormRows < rows ? first + kBatchNormRows : rows;
    column = blockIdx.x % tiles * kColumns + column_in_block();
    is_there = column < columns;
  }
  static int64_t blocks(int64_t rows, int64_t columns) {
    return parts_of(rows, kBatchNormRows) * parts_of(columns, kColumns);
  }

  // Calls use(row) for the thread's valid rows, or for all with use(row, is_valid).
  template <typename F>
  __device__ void for_each_row(const uint8_t* valid, F use) const {
    for (int64_t row = first + lane_in_block(); is_there && row < end; row += kLanes) {
      const bool is_valid = valid == nullptr || valid[row] != 0;
      if constexpr (std::is_invocable_v<F, int64_t, bool>) {
        use(row, is_valid);
      } else if (is_valid) {
        use(row);
      }
    }
  }
};

// Two arrays of each slice, parts [slices, 2, columns].
__device__ inline void write_parts(const Slice& slice, int64_t columns, float first, float second,
                                   float* parts) {
  if (lane_in_block() != 0 || !slice.is_there) return;
  parts[2 * slice.number * columns + slice.column] = first;
  parts[(2 * slice.number + 1) * columns + slice.column] = second;
}

// Means of the slices and squared deviations from them; counts [slices].
template <typename T>
__global__ void moments_kernel(BatchNormForward<T> p, float* parts, float* counts) {
  const Slice slice(p.rows, p.columns);
  const auto value = [&](int64_t row) {
    return static_cast<float>(p.x[row * p.columns + slice.column]);
  };
  float sums[2] = {};  // of values, and of valid rows
  slice.for_each_row(p.valid, [&](int64_t row) {
    sums[0] += value(row);
    ++sums[1];
  });
  add_up<kLanes>(sums);
  const float count = sums[1], mean = sums[0] / (count > 1 ? count : 1);
  float squares[1] = {};
  slice.for_each_row(p.valid, [&](int64_t row) {
    const float away = value(row) - mean;
    squares[0] = fmaf(away, away, squares[0]);
  });
  add_up<kLanes>(squares);
  write_parts(slice, p.columns, mean, squares[0], parts);
  if (threadIdx.x == 0 && slice.column == 0) counts[slice.number] = count;
}

// Sums over slices, each group taking every kGroups-th.
template <int N, typename F>
__device__ inline void add_up_slices(int64_t slices, bool is_there, double (&sums)[N], F add) {
  for (int64_t slice = lane_in_block(); is_there && slice < slices; slice += kGroups) add(slice);
  add_up<kGroups>(sums);
}

__global__ void statistics_kernel(int64_t slices, int64_t columns, const float* parts,
                                  const float* counts, float* mean, float* variance,
                                  int64_t* count) {
  const int64_t column = int64_t{blockIdx.x} * kColumns + column_in_block();
  const bool is_there = column < columns;
  double sums[2] = {};  // of values, and of valid rows
  add_up_slices(slices, is_there, sums, [&](int64_t slice) {
    const double size = counts[slice];
    sums[0] += size * parts[2 * slice * columns + column];
    sums[1] += size;
  });
  const double total = sums[1] > 1 ? sums[1] : 1, middle = sums[0] / total;
  double squares[1] = {};
  add_up_slices(slices, is_there, squares, [&](int64_t slice) {
    const double away = parts[2 * slice * columns + column] - middle;
    squares[0] += parts[(2 * slice + 1) * columns + column] + counts[slice] * away * away;
  });
  if (lane_in_block() != 0 || !is_there) return;
  mean[column] = static_cast<float>(middle);
  variance[column] = static_cast<float>(squares[0] / total);
  if (column == 0) *count = static_cast<int64_t>(sums[1]);
}

template <typename T>
__global__ void forward_kernel(BatchNormForward<T> p) {
  const Slice slice(p.rows, p.columns);
  if (!slice.is_there) return;
  const float mean = p.mean[slice.column], beta = p.beta[slice.column];
  const float slope =
      p.gamma[slice.column] / sqrtf(p.variance[slice.column] + static_cast<float>(p.eps));
  slice.for_each_row(p.valid, [&](int64_t row, bool is_valid) {
    const int64_t n = row * p.columns + slice.column;
    p.y[n] = T(is_valid ? fmaf(static_cast<float>(p.x[n]) - mean, slope, beta) : 0.0f);
  });
}

// Sums of grad (x - mean), and of grad.
template <typename T>
__global__ void products_kernel(BatchNormBackward<T> p, float* parts) {
  const Slice slice(p.rows, p.columns);
  const float mean = slice.is_there ? p.mean[slice.column] : 0;
  float sums[2] = {};
  slice.for_each_row(p.valid, [&](int64_t row) {
    const int64_t n = row * p.columns + slice.column;
    const float grad = static_cast<float>(p.grad[n]);
    sums[0] = fmaf(grad, static_cast<float>(p.x[n]) - mean, sums[0]);
    sums[1] += grad;
  });
  add_up<kLanes>(sums);
  write_parts(slice, p.columns, sums[0], sums[1], parts);
}

template <typename T>
__global__ void parameters_kernel(BatchNormBackward<T> p, int64_t slices, const float* parts) {
  const int64_t column = int64_t{blockIdx.x} * kColumns + column_in_block();
  const bool is_there = column < p.columns;
  double sums[2] = {};
  add_up_slices(slices, is_there, sums, [&](int64_t slice) {
    sums[0] += parts[2 * slice * p.columns + column];
    sums[1] += parts[(2 * slice + 1) * p.columns + column];
  });
  if (lane_in_block() != 0 || !is_there) return;
  p.grad_gamma[column] = static_cast<float>(sums[0] / sqrt(p.variance[column] + p.eps));
  p.grad_beta[column] = static_cast<float>(sums[1]);
}

template <typename T>
__global__ void backward_kernel(BatchNormBackward<T> p, const int64_t* count, const T* beside) {
  const Slice slice(p.rows, p.columns);
  if (!slice.is_there) return;
  const int64_t column = slice.column;
  const float total = *count > 1 ? static_cast<float>(*count) : 1;
  const float mean = p.mean[column];
  const float rstd = 1 / sqrtf(p.variance[column] + static_cast<float>(p.eps));
  const float slope = rstd * p.gamma[column];
  const float of_x = -slope * rstd * (p.grad_gamma[column] / total);
  const float constant = -slope * (p.grad_beta[column] / total);
  slice.for_each_row(p.valid, [&](int64_t row, bool is_valid) {
    const int64_t n = row * p.columns + column;
    const float away = static_cast<float>(p.x[n]) - mean;
    const float dx =
        is_valid ? fmaf(static_cast<float>(p.grad[n]), slope, fmaf(away, of_x, constant)) : 0.0f;
    p.dx[n] = T(beside == nullptr ? dx : dx + static_cast<float>(beside[n]));
  });
}

}  // namespace

int64_t batch_norm_scratch(int64_t rows, int64_t columns) {
  return parts_of(rows, kBatchNormRows) * (2 * columns + 1);
}

template <typename T>
void batch_norm_forward(const BatchNormForward<T>& p, int64_t* count, float* scratch,
                        Stream stream) {
  const int64_t slices = parts_of(p.rows, kBatchNormRows),
                blocks = Slice::blocks(p.rows, p.columns);
  float* counts = scratch + 2 * slices * p.columns;
  launch(moments_kernel<T>, blocks, kThreads, bytes_to_add_up<kLanes, 2, float>(), stream, p,
         scratch, counts);
  launch(statistics_kernel, parts_of(p.columns, kColumns), kColumns * kGroups,
         bytes_to_add_up<kGroups, 2, double>(), stream, slices, p.columns, scratch, counts, p.mean,
         p.variance, count);
  launch(forward_kernel<T>, blocks, kThreads, 0, stream, p);
}

template <typename T>
void batch_norm_backward(const BatchNormBackward<T>& p, const int64_t* count, const T* beside,
                         float* scratch, Stream stream) {
  const int64_t slices = parts_of(p.rows, kBatchNormRows),
                blocks = Slice::blocks(p.rows, p.columns);
  launch(products_kernel<T>, blocks, kThreads, bytes_to_add_up<kLanes, 2, float>(), stream, p,
         scratch);
  launch(parameters_kernel<T>, parts_of(p.columns, kColumns), kColumns * kGroups,
         bytes_to_add_up<kGroups, 2, double>(), stream, p, slices, scratch);
  launch(backward_kernel<T>, blocks, kThreads, 0, stream, p, count, beside);
}

template void batch_norm_forward(const BatchNormForward<float>&, int64_t*, float*, Stream);
template void batch_norm_forward(const BatchNormForward<Bf16>&, int64_t*, float*, Stream);
template void batch_norm_backward(const BatchNormBackward<float>&, const int64_t*, const float*,
                                  float*, Stream);
template void batch_norm_backward(const BatchNormBackward<Bf16>&, const int64_t*, const Bf16*,
                                  float*, Stream);

}  // namespace lra::kernels::cuda
