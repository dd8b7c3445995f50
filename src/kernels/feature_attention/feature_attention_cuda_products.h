// Products of attention by feature maps on tensor cores: of a warp's 16 rows of a tile with Z or
// its gradient, and those that sum over the rows of a run.
#pragma once

#include "kernels/feature_attention/feature_attention_cuda_tiles.h"

namespace lra::kernels::cuda {

// Z or its gradient as the second factor, in numbers of type T that add up to the float except for
// 2^-16 of it.
template <typename T, int kRows, int kRowStride>
struct SplitSums {
  static constexpr int kStride = kRowStride, kParts = sizeof(float) / sizeof(T);
  T parts[kParts][kRows * kStride];

  __device__ void set(int row, int column, float sum) {
    for (int n = 0; n < kParts; ++n) {
      const T part(sum);
      parts[n][row * kStride + column] = part;
      sum -= float(part);
    }
  }
};

// Row r of Z is row r here; its last column is in W and W + 1, for the two terms of its factor.
template <typename T, int W>
using SumRows = SplitSums<T, W, kColumnStride<T, W>>;

template <typename T, int W>
__device__ inline void load_sum_rows(const CudaFeatures<T>& p, const float* sums,
                                     SumRows<T, W>& to) {
  for (int n = threadIdx.x; n < W * kColumns<T, W>; n += kThreads) {
    const int r = n / kColumns<T, W>, c = n % kColumns<T, W>;
    const bool inside = r < p.width && (c < p.width || c == W || c == W + 1);
    to.set(r, c, inside ? sums[r * p.columns + min(c, p.width)] : 0);
  }
}

// Column c of Z is row c here, the last one W.
template <typename T, int W>
using SumColumns = SplitSums<T, kColumnSteps<W> * 8, kStride<T, W>>;

template <typename T, int W>
__device__ inline void load_sum_columns(const CudaFeatures<T>& p, const float* sums,
                                        SumColumns<T, W>& to) {
  constexpr int kRows = kColumnSteps<W> * 8;
  for (int n = threadIdx.x; n < kRows * W; n += kThreads) {
    const int r = n / kRows, c = n % kRows;
    const bool inside = r < p.width && (c < p.width || c == W);
    to.set(c, r, inside ? sums[r * p.columns + min(c, p.width)] : 0);
  }
}

// The order of the numbers in a fragment: that of Operand::columns or that of Operand::depth, which
// for float has numbers 2t and 2t + 1 in the places of t and t + 4.
enum class Order { kOfColumns, kOfDepth };

// The warp's 16 rows of a tile as the first factor, kNumbers of each.
template <typename T, int kNumbers, Order kOrder>
class WarpRows {
 public:
  __device__ explicit WarpRows(const T* tile) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) rows_[k] = fragment(tile, k * kDepth);
  }
  // c += the products of the rows with rows `row` + 0..7 of `y`.
  template <typename Sums>
  __device__ void times_rows(float (&c)[4], const Sums& y, int row) const {
    static_assert(kOrder == Order::kOfColumns);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
#pragma unroll
      for (int n = 0; n < Sums::kParts; ++n) {
        Operand<T>::multiply(c, rows_[k],
                             Operand<T>::columns(y.parts[n], Sums::kStride, row, k * kDepth));
      }
    }
  }
  // c += the products of the rows with columns `column` + 0..7 of `y`.
  template <typename Sums>
  __device__ void times_columns(float (&c)[4], const Sums& y, int column) const {
    static_assert(kOrder == Order::kOfDepth);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
#pragma unroll
      for (int n = 0; n < Sums::kParts; ++n) {
        Operand<T>::multiply(c, rows_[k],
                             Operand<T>::depth(y.parts[n], Sums::kStride, k * kDepth, column));
      }
    }
  }

 private:
  static constexpr int kDepth = Operand<T>::kDepth, kSteps = kNumbers / kDepth;
  using Rows = typename Operand<T>::Rows;

  __device__ static Rows fragment(const T* tile, int k) {
    constexpr int kStride = cuda::kStride<T, kNumbers>;
    const int row = threadIdx.x / 32 * kWarpRows;
    if constexpr (kOrder == Order::kOfColumns || std::is_same_v<T, Bf16>) {
      return Operand<T>::rows(tile, kStride, row, k);
    } else {
      const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
      const T* at = tile + (row + g) * kStride + k + 2 * t;
      return {{at[0], at[8 * kStride], at[1], at[8 * kStride + 1]}};
    }
  }

  Rows rows_[kSteps];
};

// Features whose sums over a run are computed by one block: the sums of more would not fit into
// registers.
constexpr int kBlockFeatures = 64;
template <int W>
constexpr int kFeatureBlocks = (W + kBlockFeatures - 1) / kBlockFeatures;

// Blocks that a multiprocessor runs at once: as many as registers allow without spills.
template <int W>
constexpr int kBlocksAtOnce = W <= 32   ? 4
                              : W <= 64 ? 3
                                        : 1;

// Columns as rows of a first factor: 16 neighbors, in the order of Operand::depth.
__device__ inline Operand<Bf16>::Rows as_rows(const Operand<Bf16>::Columns& first,
                                              const Operand<Bf16>::Columns& second) {
  return {{first.words[0], second.words[0], first.words[1], second.words[1]}};
}
__device__ inline Operand<float>::Rows as_rows(const Operand<float>::Columns& first,
                                               const Operand<float>::Columns& second) {
  return {{first.values[0], second.values[0], first.values[1], second.values[1]}};
}

// Features transposed times values, summed over tiles: a part of Z or its gradient. A warp has 16
// features, a block the 64 from `first` on. Where there are fewer, warps with the same features
// share the rows of a tile, and each has its own sums.
template <typename T, int W>
class RunSums {
 public:
  static constexpr int kFeatures = W < kBlockFeatures ? W : kBlockFeatures;
  static constexpr int kWarpsAcross = kFeatures / 16, kShares = kThreads / 32 / kWarpsAcross;

  __device__ explicit RunSums(int first)
      : first_(first + threadIdx.x / 32 % kWarpsAcross * 16),
        share_(threadIdx.x / 32 / kWarpsAcross) {}

  // Products of a tile are summed on their own first: see add_weighted.
  __device__ void add(const RowTiles<T, W>& tiles) {
    constexpr int kDepth = Operand<T>::kDepth, kRows = kTile / kShares, kDepths = kRows / kDepth;
    const int row = share_ * kRows;
    typename Operand<T>::Rows features[kDepths];
#pragma unroll
    for (int k = 0; k < kDepths; ++k) {
      const auto eight = [&](int column) {
        return Operand<T>::depth(tiles.features, kStride<T, W>, row + k * kDepth, column);
      };
      features[k] = as_rows(eight(first_), eight(first_ + 8));
    }
#pragma unroll
    for (int n = 0; n < kColumnSteps<W>; ++n) {
      float part[4] = {};
#pragma unroll
      for (int k = 0; k < kDepths; ++k) {
        Operand<T>::multiply(
            part, features[k],
            Operand<T>::depth(tiles.values, kColumnStride<T, W>, row + k * kDepth, n * 8));
      }
      for (int element = 0; element < 4; ++element) sums_[n][element] += part[element];
    }
  }

  // Writes the warp's share into parts [runs, planes, kShares, width, columns]; not the padding of
  // a row.
  __device__ void store(const CudaFeatures<T>& p, const FeatureRows& rows, float* parts) const {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int64_t run = rows.begin / kFeatureRows;
    const int64_t part = (run * p.planes + plane_of(p, rows)) * kShares + share_;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = first_ + g + half * 8;
      if (r >= p.width) continue;
      float* row = parts + (part * p.width + r) * p.columns;
#pragma unroll
      for (int n = 0; n < W / 8; ++n) {
        for (int odd = 0; odd < 2; ++odd) {
          const int c = n * 8 + t * 2 + odd;
          if (c < p.width) row[c] = sums_[n][half * 2 + odd];
        }
      }
      if (t == 0) row[p.width] = sums_[W / 8][half * 2] + sums_[W / 8][half * 2 + 1];
    }
  }

 private:
  int first_, share_;
  float sums_[kColumnSteps<W>][4] = {};
};

}  // namespace lra::kernels::cuda
