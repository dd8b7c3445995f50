// Attention by feature maps of kernels/feature_attention/feature_attention.h on a CUDA device: a
// block takes a run of kFeatureRows rows of one head. Z and its gradient are parts of runs first,
// which are added in their order.
//
// With bfloat16 arrays features are rounded to bfloat16; Z, its gradient and the share of the
// denominator enter products in two parts.
#include <initializer_list>
#include <string>
#include <type_traits>

#include "kernels/cuda/launch.h"
#include "kernels/feature_attention/feature_attention_cuda_products.h"

namespace lra::kernels::cuda {
namespace {

// The lane's two rows of a tile, which begins at row `first` of the sequence.
__device__ inline int64_t row_of_lane(int64_t first, int half) {
  return first + threadIdx.x / 32 * kWarpRows + threadIdx.x % 32 / 4 + half * 8;
}

// Broadcasts the first column of the product c, which lanes with t = 0 hold, over the lanes of a
// row; the other lanes hold zeros.
__device__ inline float first_of_row(const float (&c)[4], int half) {
  float sum = c[half * 2];
  sum += __shfl_xor_sync(~0u, sum, 1);
  return sum + __shfl_xor_sync(~0u, sum, 2);
}

template <typename T, int W>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<W>)
    sum_features_kernel(CudaFeatures<T> p, float* parts) {
  auto& tiles = *reinterpret_cast<RowTiles<T, W>*>(dynamic_shared());
  const int block = static_cast<int>(blockIdx.x);
  const FeatureRows rows = rows_of_block(p, block / kFeatureBlocks<W>);
  RunSums<T, W> sums(block % kFeatureBlocks<W> * kBlockFeatures);
  for (int64_t first = rows.begin; first < rows.end; first += kTile) {
    __syncthreads();  // the tile before
    load_keys<T, W>(p, rows, first, tiles);
    __syncthreads();
    sums.add(tiles);
  }
  sums.store(p, rows, parts);
}

// sums [planes, width, columns] of parts [runs, planes, shares, width, columns], in their order.
__global__ void add_runs_kernel(int64_t planes, int width, int columns, int runs, int shares,
                                const float* parts, float* sums) {
  const int64_t index = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t size = int64_t{width} * columns, all = planes * size;
  if (index >= all) return;
  float sum = 0;
  if (index % columns <= width) {
    const float* part = parts + index / size * shares * size + index % size;
    for (int run = 0; run < runs; ++run, part += shares * all) {
      for (int share = 0; share < shares; ++share) sum += part[share * size];
    }
  }
  sums[index] = sum;
}

template <typename T, int W>
struct AttendTiles {
  SumColumns<T, W> sums;
  T features[kTile * kStride<T, W>];
};

template <typename T, int W>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<W>)
    attend_features_kernel(CudaFeatures<T> p, const float* sums, T* out) {
  auto& tiles = *reinterpret_cast<AttendTiles<T, W>*>(dynamic_shared());
  const FeatureRows rows = rows_of_block(p, static_cast<int>(blockIdx.x));
  load_sum_columns<T, W>(p, sums_of(p, rows, sums), tiles.sums);
  __syncthreads();
  const int t = threadIdx.x % 4;
  for (int64_t first = rows.begin; first < rows.end; first += kTile) {
    __syncwarp();  // the tile before
    load_queries<T, W>(p, rows, first, tiles.features);
    __syncwarp();
    const WarpRows<T, W, Order::kOfColumns> features(tiles.features);
    float denominators[4] = {};
    features.times_rows(denominators, tiles.sums, W);
    const float scale[2] = {inverse(p, first_of_row(denominators, 0)),
                            inverse(p, first_of_row(denominators, 1))};
#pragma unroll
    for (int e = 0; e < W; e += 8) {
      float c[4] = {};
      features.times_rows(c, tiles.sums, e);
      for (int half = 0; half < 2; ++half) {
        const int64_t row = row_of_lane(first, half);
        if (row >= rows.end) continue;
        store_pair(p, out + out_row(p, rows, row), e + 2 * t, c[half * 2] * scale[half],
                   c[half * 2 + 1] * scale[half]);
      }
    }
  }
}

template <typename T, int W>
struct BackwardTiles {
  SumRows<T, W> sums;  // Z or its gradient
  RowTiles<T, W> rows;
};

// Features of the warp's queries; as values the gradients of their numerators and of their
// denominators, times the denominators.
template <typename T, int W>
__device__ inline void load_gradients(const FeatureAttentionBackward<T>& args,
                                      const CudaFeatures<T>& p, const FeatureRows& rows,
                                      int64_t first, RowTiles<T, W>& tiles) {
  constexpr int kCount = Packed<T>::kCount;
  for_each_part<T, W, 3>(
      p,
      [&](int source, int row) -> const T* {
        if (first + row >= rows.end) return nullptr;
        if (source == 0) return p.qkv + qkv_row(p, rows, first + row, QkvPart::kQuery);
        return (source == 1 ? args.grad : args.out) + out_row(p, rows, first + row);
      },
      [&](int row, int e, const uint4(&words)[3]) {
        write_features<T, W>(p, tiles.features, row, e, words[0], first + row < rows.end);
        float grad[kCount], out[kCount], product = 0;
        Packed<T>::unpack(words[1], grad);
        Packed<T>::unpack(words[2], out);
        for (int n = 0; n < kCount; ++n) product += grad[n] * out[n];
        for (int distance = W / kCount / 2; distance > 0; distance /= 2) {
          product += __shfl_xor_sync(~0u, product, distance);
        }
        write_values<T, W>(tiles, row, e, words[1], -product);
      });
}

// Multiplies the features of the lane's rows with its factors.
template <typename T, int W>
__device__ inline void scale_features(T* features, const float (&factors)[2]) {
  for (int half = 0; half < 2; ++half) {
    T* row = features + row_of_lane(0, half) * kStride<T, W> + threadIdx.x % 4 * 2;
#pragma unroll
    for (int e = 0; e < W; e += 8) {
      Packed<T>::store_pair(row + e, float(row[e]) * factors[half],
                            float(row[e + 1]) * factors[half]);
    }
  }
}

// Writes gradients of inputs: those of eight features, times factors and the slopes of the map.
template <typename T>
__device__ inline void store_through_features(const CudaFeatures<T>& p, const FeatureRows& rows,
                                              int64_t first, int e, QkvPart part,
                                              const float (&c)[4], const float (&factors)[2],
                                              T* grad_qkv) {
  e += threadIdx.x % 4 * 2;
  for (int half = 0; half < 2; ++half) {
    const int64_t row = row_of_lane(first, half);
    if (row >= rows.end) continue;
    const bool used = part == QkvPart::kQuery || takes_part(p, rows, row);
    const int64_t at = qkv_row(p, rows, row, part);
    float grad[2] = {};
    for (int n = 0; n < 2; ++n) {
      if (!used || e + n >= p.width) continue;
      grad[n] = c[half * 2 + n] * factors[half] * slope(p, p.qkv[at + e + n]);
    }
    store_pair(p, grad_qkv + at, e, grad[0], grad[1]);
  }
}

template <typename T, int W>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<W>)
    query_gradients_kernel(CudaFeatures<T> p, FeatureAttentionBackward<T> args, float* parts) {
  auto& tiles = *reinterpret_cast<BackwardTiles<T, W>*>(dynamic_shared());
  const int block = static_cast<int>(blockIdx.x);
  const int first_feature = block % kFeatureBlocks<W> * kBlockFeatures;
  const FeatureRows rows = rows_of_block(p, block / kFeatureBlocks<W>);
  load_sum_rows<T, W>(p, sums_of(p, rows, args.sums), tiles.sums);
  RunSums<T, W> grad_sums(first_feature);
  for (int64_t first = rows.begin; first < rows.end; first += kTile) {
    __syncthreads();  // Z, and the tile before
    load_gradients<T, W>(args, p, rows, first, tiles.rows);
    __syncwarp();
    float denominators[4] = {};
    WarpRows<T, W, Order::kOfDepth>(tiles.rows.features).times_columns(denominators, tiles.sums, W);
    const float scale[2] = {inverse(p, first_of_row(denominators, 0)),
                            inverse(p, first_of_row(denominators, 1))};
    const WarpRows<T, kColumns<T, W>, Order::kOfColumns> grads(tiles.rows.values);
#pragma unroll
    for (int n = 0; n < RunSums<T, W>::kFeatures; n += 8) {
      const int e = first_feature + n;
      float c[4] = {};
      grads.times_rows(c, tiles.sums, e);
      store_through_features(p, rows, first, e, QkvPart::kQuery, c, scale, args.grad_qkv);
    }
    __syncwarp();
    scale_features<T, W>(tiles.rows.features, scale);
    __syncthreads();
    grad_sums.add(tiles.rows);
  }
  grad_sums.store(p, rows, parts);
}

template <typename T, int W>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<W>)
    key_gradients_kernel(CudaFeatures<T> p, const float* grad_sums, T* grad_qkv) {
  auto& tiles = *reinterpret_cast<BackwardTiles<T, W>*>(dynamic_shared());
  const FeatureRows rows = rows_of_block(p, static_cast<int>(blockIdx.x));
  load_sum_rows<T, W>(p, sums_of(p, rows, grad_sums), tiles.sums);
  __syncthreads();
  for (int64_t first = rows.begin; first < rows.end; first += kTile) {
    __syncwarp();  // the tile before
    load_keys<T, W>(p, rows, first, tiles.rows);
    __syncwarp();
    const WarpRows<T, kColumns<T, W>, Order::kOfColumns> values(tiles.rows.values);
#pragma unroll
    for (int e = 0; e < W; e += 8) {
      float c[4] = {};
      values.times_rows(c, tiles.sums, e);
      store_through_features(p, rows, first, e, QkvPart::kKey, c, {1, 1}, grad_qkv);
    }
    const WarpRows<T, W, Order::kOfDepth> features(tiles.rows.features);
#pragma unroll
    for (int e = 0; e < W; e += 8) {
      float c[4] = {};
      features.times_columns(c, tiles.sums, e);
      for (int half = 0; half < 2; ++half) {
        const int64_t row = row_of_lane(first, half);
        if (row >= rows.end) continue;
        const bool used = takes_part(p, rows, row);
        store_pair(p, grad_qkv + qkv_row(p, rows, row, QkvPart::kValue), e + threadIdx.x % 4 * 2,
                   used ? c[half * 2] : 0, used ? c[half * 2 + 1] : 0);
      }
    }
  }
}

// Calls use(constant) with a width rounded up to one that is compiled.
template <typename F>
void with_width(int64_t width, F use) {
  if (width <= 16) return use(std::integral_constant<int, 16>());
  if (width <= 32) return use(std::integral_constant<int, 32>());
  if (width <= 64) return use(std::integral_constant<int, 64>());
  return use(std::integral_constant<int, 128>());
}

template <typename T>
CudaFeatures<T> described(const FeatureAttention<T>& problem,
                          std::initializer_list<const T*> arrays) {
  if (problem.width > kMaxHeadDim) {
    throw Error({.where = "attention by feature maps on a GPU",
                 .what = "heads are " + std::to_string(problem.width) + " wide",
                 .expected = "at most " + std::to_string(kMaxHeadDim),
                 .advice = "take more heads, or compute on the CPU, without --device"});
  }
  CudaFeatures<T> p;
  p.length = static_cast<int>(problem.length);
  p.heads = static_cast<int>(problem.heads);
  p.width = static_cast<int>(problem.width);
  p.columns = static_cast<int>(feature_sum_columns(problem.width));
  p.runs = static_cast<int>(parts_of(problem.length, kFeatureRows));
  p.planes = problem.batch * problem.heads;
  p.is_elu = problem.map == FeatureMap::kElu;
  p.offset = static_cast<float>(problem.offset);
  p.eps = static_cast<float>(problem.eps);
  p.qkv = problem.qkv;
  p.mask = problem.mask;
  p.aligned = problem.width % Packed<T>::kCount == 0;
  for (const T* array : arrays) {
    p.aligned = p.aligned && reinterpret_cast<uintptr_t>(array) % 16 == 0;
  }
  return p;
}

template <typename T, int W>
void add_runs(const CudaFeatures<T>& p, const float* parts, float* sums, Stream stream) {
  const int64_t count = p.planes * p.width * p.columns;
  launch(add_runs_kernel, parts_of(count, kThreads), kThreads, 0, stream, p.planes, p.width,
         p.columns, p.runs, RunSums<T, W>::kShares, parts, sums);
}

}  // namespace

template <typename T>
int64_t feature_attention_scratch(const FeatureAttention<T>& problem) {
  const CudaFeatures<T> p = described<T>(problem, {});
  int64_t parts = 0;
  with_width(p.width,
             [&](auto width) { parts = p.runs * RunSums<T, decltype(width)::value>::kShares; });
  // The last one holds the gradient of Z.
  return (parts + 1) * p.planes * p.width * p.columns;
}

template <typename T>
void feature_attention_forward(const FeatureAttentionForward<T>& args, float* scratch,
                               Stream stream) {
  const CudaFeatures<T> p = described<T>(args.problem, {args.problem.qkv, args.out});
  const int64_t blocks = p.planes * p.runs;
  with_width(p.width, [&](auto width) {
    constexpr int W = decltype(width)::value;
    launch(sum_features_kernel<T, W>, blocks * kFeatureBlocks<W>, kThreads, sizeof(RowTiles<T, W>),
           stream, p, scratch);
    add_runs<T, W>(p, scratch, args.sums, stream);
    launch(attend_features_kernel<T, W>, blocks, kThreads, sizeof(AttendTiles<T, W>), stream, p,
           args.sums, args.out);
  });
}

template <typename T>
void feature_attention_backward(const FeatureAttentionBackward<T>& args, float* scratch,
                                Stream stream) {
  const CudaFeatures<T> p =
      described<T>(args.problem, {args.problem.qkv, args.out, args.grad, args.grad_qkv});
  const int64_t blocks = p.planes * p.runs;
  float *grad_sums = scratch, *parts = scratch + p.planes * p.width * p.columns;
  with_width(p.width, [&](auto width) {
    constexpr int W = decltype(width)::value;
    constexpr size_t kBytes = sizeof(BackwardTiles<T, W>);
    launch(query_gradients_kernel<T, W>, blocks * kFeatureBlocks<W>, kThreads, kBytes, stream, p,
           args, parts);
    add_runs<T, W>(p, parts, grad_sums, stream);
    launch(key_gradients_kernel<T, W>, blocks, kThreads, kBytes, stream, p, grad_sums,
           args.grad_qkv);
  });
}

template int64_t feature_attention_scratch<float>(const FeatureAttention<float>&);
template int64_t feature_attention_scratch<Bf16>(const FeatureAttention<Bf16>&);
template void feature_attention_forward<float>(const FeatureAttentionForward<float>&, float*,
                                               Stream);
template void feature_attention_forward<Bf16>(const FeatureAttentionForward<Bf16>&, float*, Stream);
template void feature_attention_backward<float>(const FeatureAttentionBackward<float>&, float*,
                                                Stream);
template void feature_attention_backward<Bf16>(const FeatureAttentionBackward<Bf16>&, float*,
                                               Stream);

}  // namespace lra::kernels::cuda
