// Tiles of attention by feature maps on a CUDA device: 64 rows of one head in shared memory.
//
// A block of four warps goes through one run of kFeatureRows rows, a tile at a time; each warp
// reads 16 rows of a tile.
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/feature_attention/feature_attention_rows.h"

namespace lra::kernels::cuda {

// FeatureAttention as the kernels take it.
template <typename T>
struct CudaFeatures {
  int length = 0, heads = 0, width = 0;
  int columns = 0;  // of Z
  int runs = 0;     // of the rows of one head
  int64_t planes = 0;
  bool is_elu = false;
  float offset = 0, eps = 0;
  const T* qkv = nullptr;
  const uint8_t* mask = nullptr;
  bool aligned = false;  // rows can be read and written 16 bytes at a time
};

// The rows of block `index`; heads of the same rows follow each other, as their numbers do.
template <typename T>
__device__ inline FeatureRows rows_of_block(const CudaFeatures<T>& p, int index) {
  const int run = index / p.heads % p.runs, begin = run * static_cast<int>(kFeatureRows);
  return {index / p.heads / p.runs, index % p.heads, begin,
          min(begin + static_cast<int>(kFeatureRows), p.length)};
}

template <typename T>
__device__ inline int64_t plane_of(const CudaFeatures<T>& p, const FeatureRows& rows) {
  return rows.example * p.heads + rows.head;
}

// Offset of a row in qkv and its gradient, and in out and its gradient.
template <typename T>
__device__ inline int64_t qkv_row(const CudaFeatures<T>& p, const FeatureRows& rows, int64_t row,
                                  QkvPart part) {
  const int64_t token = rows.example * p.length + row;
  return ((token * 3 + static_cast<int64_t>(part)) * p.heads + rows.head) * p.width;
}
template <typename T>
__device__ inline int64_t out_row(const CudaFeatures<T>& p, const FeatureRows& rows, int64_t row) {
  return ((rows.example * p.length + row) * p.heads + rows.head) * p.width;
}

// The numbers of Z, or of its gradient, of the rows' head.
template <typename T>
__device__ inline const float* sums_of(const CudaFeatures<T>& p, const FeatureRows& rows,
                                       const float* sums) {
  return sums + plane_of(p, rows) * p.width * p.columns;
}

template <typename T>
__device__ inline bool takes_part(const CudaFeatures<T>& p, const FeatureRows& rows, int64_t row) {
  return row < rows.end && (p.mask == nullptr || p.mask[rows.example * p.length + row] != 0);
}

template <typename T>
__device__ inline float feature(const CudaFeatures<T>& p, float x) {
  // NaN stays NaN.
  if (!p.is_elu) return (x <= 0 ? 0 : x) + p.offset;
  return x > 0 ? x + 1 : expf(x);
}
template <typename T>
__device__ inline float slope(const CudaFeatures<T>& p, float x) {
  if (x > 0) return 1;
  return p.is_elu ? expf(x) : 0;
}
// 1 / (sum + eps), or 0 without a key.
template <typename T>
__device__ inline float inverse(const CudaFeatures<T>& p, float sum) {
  return sum == 0 ? 0 : 1 / (sum + p.eps);
}

// Sixteen bytes of numbers, and two numbers that lie side by side.
template <typename T>
struct Packed;

template <>
struct Packed<float> {
  static constexpr int kCount = 4;
  __device__ static void unpack(const uint4& words, float (&x)[kCount]) {
    const uint32_t all[kCount] = {words.x, words.y, words.z, words.w};
    for (int n = 0; n < kCount; ++n) x[n] = __uint_as_float(all[n]);
  }
  __device__ static uint4 pack(const float (&x)[kCount]) {
    return {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
            __float_as_uint(x[3])};
  }
  __device__ static void store_pair(float* at, float first, float second) {
    *reinterpret_cast<uint64_t*>(at) =
        uint64_t{__float_as_uint(second)} << 32 | __float_as_uint(first);
  }
};

template <>
struct Packed<Bf16> {
  static constexpr int kCount = 8;
  __device__ static void unpack(const uint4& words, float (&x)[kCount]) {
    const uint32_t all[kCount / 2] = {words.x, words.y, words.z, words.w};
    for (int n = 0; n < kCount / 2; ++n) {
      x[2 * n] = __uint_as_float(all[n] << 16);
      x[2 * n + 1] = __uint_as_float(all[n] & 0xFFFF0000);
    }
  }
  __device__ static uint4 pack(const float (&x)[kCount]) {
    return {pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]),
            pack_bf16(x[6], x[7])};
  }
  __device__ static void store_pair(Bf16* at, float first, float second) {
    *reinterpret_cast<uint32_t*>(at) = pack_bf16(first, second);
  }
};

// Numbers of a row from e on, sixteen bytes of them; zeros beyond its end.
template <typename T>
__device__ inline uint4 gather(const CudaFeatures<T>& p, const T* row, int e) {
  float x[Packed<T>::kCount];
  for (int n = 0; n < Packed<T>::kCount; ++n) x[n] = e + n < p.width ? float(row[e + n]) : 0;
  return Packed<T>::pack(x);
}

// Calls use(row, e, words) for all parts of 16 bytes of the warp's 16 rows: words[n] are those of
// the row that source(n, row) points to (null: zeros) from number e on. Rows count from the first
// of the tile. All lanes call `use` together, those of a row side by side.
template <typename T, int W, int kSources, typename Source, typename Use>
__device__ inline void for_each_part(const CudaFeatures<T>& p, Source source, Use use) {
  constexpr int kCount = Packed<T>::kCount, kParts = W / kCount;
  constexpr int kTurns = kWarpRows * kParts / 32, kMost = kSources == 1 ? 4 : 2,
                kBatch = kTurns < kMost ? kTurns : kMost;
  const int warp_row = threadIdx.x / 32 * kWarpRows, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int turn = 0; turn < kTurns; turn += kBatch) {
    uint4 words[kBatch][kSources];
    const auto load = [&](auto read) {
#pragma unroll
      for (int n = 0; n < kBatch; ++n) {
        const int place = (turn + n) * 32 + lane;
#pragma unroll
        for (int s = 0; s < kSources; ++s) {
          const T* row = source(s, warp_row + place / kParts);
          words[n][s] = row == nullptr ? uint4{0, 0, 0, 0} : read(row, place % kParts * kCount);
        }
      }
    };
    // The branch is outside the loop, so that the reads of a batch overlap.
    if (p.aligned) {
      load([&](const T* row, int e) {
        return e < p.width ? *reinterpret_cast<const uint4*>(row + e) : uint4{0, 0, 0, 0};
      });
    } else {
      load([&](const T* row, int e) { return gather(p, row, e); });
    }
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      const int place = (turn + n) * 32 + lane;
      use(warp_row + place / kParts, place % kParts * kCount, words[n]);
    }
  }
}

// Two neighbors of a row in memory.
template <typename T>
__device__ inline void store_pair(const CudaFeatures<T>& p, T* row, int e, float first,
                                  float second) {
  if (p.aligned) {
    if (e < p.width) Packed<T>::store_pair(row + e, first, second);
    return;
  }
  if (e < p.width) row[e] = T(first);
  if (e + 1 < p.width) row[e + 1] = T(second);
}

// Columns of values of width W in a tile: the values, then the factor of the sum of features as two
// terms, and zeros up to a whole depth of a product.
template <typename T, int W>
constexpr int kColumns = W + Operand<T>::kDepth;
template <typename T, int W>
constexpr int kColumnStride = kStride<T, kColumns<T, W>>;
// Steps of eight columns with numbers in them.
template <int W>
constexpr int kColumnSteps = W / 8 + 1;

template <typename T, int W>
struct RowTiles {
  T features[kTile * kStride<T, W>], values[kTile * kColumnStride<T, W>];
};

template <typename T, int W>
__device__ inline void write_features(const CudaFeatures<T>& p, T* features, int row, int e,
                                      const uint4& words, bool used) {
  constexpr int kCount = Packed<T>::kCount;
  float x[kCount];
  Packed<T>::unpack(words, x);
  for (int n = 0; n < kCount; ++n) x[n] = used && e + n < p.width ? feature(p, x[n]) : 0;
  *reinterpret_cast<uint4*>(features + row * kStride<T, W> + e) = Packed<T>::pack(x);
}

// Values from number e on; the lane with the first one also writes `last` after the values, as two
// numbers of type T that add up to it.
template <typename T, int W>
__device__ inline void write_values(RowTiles<T, W>& tiles, int row, int e, const uint4& words,
                                    float last) {
  constexpr int kCount = Packed<T>::kCount;
  T* to = tiles.values + row * kColumnStride<T, W>;
  *reinterpret_cast<uint4*>(to + e) = words;
  if (e != 0) return;
  const float high = float(T(last));
  const float first[kCount] = {high, last - high};
  *reinterpret_cast<uint4*>(to + W) = Packed<T>::pack(first);
  *reinterpret_cast<uint4*>(to + W + kCount) = uint4{0, 0, 0, 0};
}

// Features, values and the 1 of the warp's keys; zeros for those that take no part.
template <typename T, int W>
__device__ inline void load_keys(const CudaFeatures<T>& p, const FeatureRows& rows, int64_t first,
                                 RowTiles<T, W>& tiles) {
  for_each_part<T, W, 2>(
      p,
      [&](int part, int row) -> const T* {
        if (!takes_part(p, rows, first + row)) return nullptr;
        return p.qkv + qkv_row(p, rows, first + row, part == 0 ? QkvPart::kKey : QkvPart::kValue);
      },
      [&](int row, int e, const uint4(&words)[2]) {
        const bool used = takes_part(p, rows, first + row);
        write_features<T, W>(p, tiles.features, row, e, words[0], used);
        write_values<T, W>(tiles, row, e, words[1], used ? 1 : 0);
      });
}

// The features of the warp's queries.
template <typename T, int W>
__device__ inline void load_queries(const CudaFeatures<T>& p, const FeatureRows& rows,
                                    int64_t first, T* features) {
  for_each_part<T, W, 1>(
      p,
      [&](int, int row) {
        return first + row < rows.end ? p.qkv + qkv_row(p, rows, first + row, QkvPart::kQuery)
                                      : nullptr;
      },
      [&](int row, int e, const uint4(&words)[1]) {
        write_features<T, W>(p, features, row, e, words[0], first + row < rows.end);
      });
}

}  // namespace lra::kernels::cuda
