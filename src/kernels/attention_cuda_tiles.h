// What the passes of attention on a CUDA device share: tiles of 64 queries or keys in shared
// memory, products of them on tensor cores, and which of their pairs see each other.
//
// A block of four warps keeps one tile of rows and goes through the tiles of columns that the rows
// may see; each warp has 16 of the rows. Rows are queries and columns keys, or (for the gradients
// of keys and values) the other way round: each axis has the same rules, seen from its side. The
// columns of a tile are gathered: the next 64 that a block list names, so lists of short blocks
// leave no lanes idle.
#pragma once

#include "base/rng.h"
#include "kernels/cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/cuda_warp.h"

namespace lra::kernels::cuda {

constexpr int kTile = 64, kThreads = 128, kWarpRows = 16;
constexpr int kSteps = kTile / 8;  // of eight columns, the width of one product
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

// Queries or keys.
struct Axis {
  int length = 0;
  int block = 0;  // rows of one block of the lists; the length without lists
  const uint8_t* mask = nullptr;
  // The blocks of the other axis that each block of this one may see; null: all.
  const int64_t* offsets = nullptr;
  const int32_t* blocks = nullptr;
  int before = -1, after = -1;  // row r sees columns r - before to r + after; -1: no limit
};

// AttentionProblem as the kernels take it.
struct CudaAttention {
  int heads = 0, head_dim = 0, lists = 1;
  int64_t planes = 0;
  Axis queries, keys;
  SortedRuns runs;
  float scale = 1;
  uint32_t dropout_threshold = 0;
  float dropout_scale = 1;
  uint64_t dropout_key = 0;
  bool aligned = false;  // rows can be read 16 bytes at a time
};

struct RowTile {
  int plane = 0, batch = 0, head = 0;
  int block = 0;  // of the lists
  int begin = 0, end = 0;
  PlaneRuns runs;
};

__device__ inline PlaneRuns plane_runs(const CudaAttention& p, int plane) {
  return p.runs.data == nullptr ? PlaneRuns{} : p.runs.plane(plane);
}

__host__ __device__ inline int tiles_of_block(const Axis& rows) {
  return (rows.block + kTile - 1) / kTile;
}
__host__ __device__ inline int blocks_of(const Axis& axis) {
  return (axis.length + axis.block - 1) / axis.block;
}

// Tile `index` of all planes; without rows where a block is shorter than the others.
__device__ inline RowTile row_tile(const CudaAttention& p, const Axis& rows, int index) {
  const int tiles = tiles_of_block(rows), blocks = blocks_of(rows);
  RowTile tile;
  tile.block = index / tiles % blocks;
  tile.plane = index / tiles / blocks;
  tile.batch = tile.plane / p.heads;
  tile.head = tile.plane % p.heads;
  const int end = min((tile.block + 1) * rows.block, rows.length);
  tile.begin = min(tile.block * rows.block + index % tiles * kTile, end);
  tile.end = min(tile.begin + kTile, end);
  tile.runs = plane_runs(p, tile.plane);
  return tile;
}

// The columns that a tile of rows may see, one after another. In sorted runs queries see the span
// of their runs, which is short as neighbours share a bucket; keys go through all queries.
template <bool kRowsAreQueries>
class Columns {
 public:
  __device__ Columns(const CudaAttention& p, const Axis& rows, const Axis& columns,
                     const RowTile& tile)
      : axis_(columns) {
    if (kRowsAreQueries && tile.runs.order != nullptr) {
      first_ = columns.length;
      int end = 0;
      for (int row = tile.begin; row < tile.end; ++row) {
        const int run_begin = tile.runs.begin()[row], run_end = tile.runs.end()[row];
        if (run_end > run_begin) {
          first_ = min(first_, run_begin);
          end = max(end, run_end);
        }
      }
      count_ = max(0, end - first_);
      return;
    }
    if (rows.offsets != nullptr) {
      const int64_t row = int64_t{tile.plane % p.lists} * blocks_of(rows) + tile.block;
      list_ = rows.blocks + rows.offsets[row];
      count_ = static_cast<int>(rows.offsets[row + 1] - rows.offsets[row]) * columns.block;
      return;
    }
    first_ = rows.before < 0 ? 0 : max(0, tile.begin - rows.before);
    count_ =
        (rows.after < 0 ? columns.length : min(columns.length, tile.end + rows.after)) - first_;
  }
  __device__ int count() const { return count_; }
  // -1: none.
  __device__ int at(int index) const {
    if (index >= count_) return -1;
    const int column = list_ == nullptr
                           ? first_ + index
                           : list_[index / axis_.block] * axis_.block + index % axis_.block;
    return column < axis_.length ? column : -1;
  }
  __device__ bool contains(int column) const {
    if (list_ == nullptr) return column >= first_ && column < first_ + count_;
    for (int n = 0; n < count_ / axis_.block; ++n) {
      if (list_[n] == column / axis_.block) return column < axis_.length;
    }
    return false;
  }

 private:
  const Axis& axis_;
  const int32_t* list_ = nullptr;
  int first_ = 0, count_ = 0;
};

// Whether any row of the tile may see the column, by the window and the runs.
template <bool kRowsAreQueries>
__device__ inline bool may_see(const Axis& rows, const RowTile& tile, int column) {
  if (rows.before >= 0 && column < tile.begin - rows.before) return false;
  if (rows.after >= 0 && column > tile.end - 1 + rows.after) return false;
  if (kRowsAreQueries || tile.runs.order == nullptr) return true;
  return tile.runs.begin()[column] < tile.end && tile.runs.end()[column] > tile.begin;
}

__device__ inline bool sees_in_runs(const PlaneRuns& runs, int query, int key) {
  const int begin = runs.begin()[query], end = runs.end()[query];
  if (key < begin || key >= end || (key == query && end - begin > 1)) return false;
  for (int64_t e = 0; e < runs.num_earlier; ++e) {
    const int rank = runs.earlier_rank(e)[key];
    if (rank >= runs.earlier_begin(e)[query] && rank < runs.earlier_end(e)[query]) return false;
  }
  return true;
}

// Whether a query and a key that no mask hides, of blocks that may see each other, do.
__device__ inline bool sees(const CudaAttention& p, const RowTile& tile, int query, int key) {
  if (tile.runs.order != nullptr) return sees_in_runs(tile.runs, query, key);
  return (p.queries.before < 0 || key >= query - p.queries.before) &&
         (p.queries.after < 0 || key <= query + p.queries.after);
}

// Whether the attention weights of one plane are dropped; neighbouring decisions share a block of
// random numbers, which is kept.
class Dropped {
 public:
  __device__ Dropped(const CudaAttention& p, int plane)
      : threshold_(p.dropout_threshold),
        key_(p.dropout_key),
        plane_(static_cast<uint32_t>(plane)) {}
  __device__ bool operator()(uint32_t query, uint32_t key) {
    const uint32_t counter = key / 128 * 16 + key % 16;
    if (counter != counter_ || query != query_) {
      counter_ = counter;
      query_ = query;
      const PhiloxBlock made = philox4x32({counter, query, plane_, 0}, key_);
      for (int n = 0; n < 4; ++n) block_[n] = made[n];
    }
    const uint32_t n = key % 128 / 32;
    const uint32_t low = n % 2 == 0 ? block_[0] : block_[1];
    const uint32_t high = n % 2 == 0 ? block_[2] : block_[3];
    const uint32_t word = n < 2 ? low : high;
    return (key % 32 < 16 ? word & 0xFFFF : word >> 16) < threshold_;
  }

 private:
  uint32_t threshold_;
  uint64_t key_;
  uint32_t plane_, counter_ = ~0u, query_ = ~0u;
  uint32_t block_[4] = {};
};

// How values enter the tensor cores: fragments of a 16-row operand (Rows) and of an 8-column one
// (Columns) over a depth of kDepth.
template <typename T>
struct Operand;

template <>
struct Operand<Bf16> {
  static constexpr int kDepth = 16, kPadding = 8;
  struct Rows {
    uint32_t words[4];
  };
  struct Columns {
    uint32_t words[2];
  };
  __device__ static uint32_t pair(const Bf16* at) { return *reinterpret_cast<const uint32_t*>(at); }
  __device__ static uint32_t pair(const Bf16& low, const Bf16& high) {
    return uint32_t{high.bits} << 16 | low.bits;
  }

  // Row `row` + 0..15 of a tile, from column `k` on.
  __device__ static Rows rows(const Bf16* tile, int stride, int row, int k) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const Bf16* at = tile + (row + g) * stride + k + 2 * t;
    return {{pair(at), pair(at + 8 * stride), pair(at + 8), pair(at + 8 * stride + 8)}};
  }
  // Rows `column` + 0..7 of a tile as columns of the operand.
  __device__ static Columns columns(const Bf16* tile, int stride, int column, int k) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const Bf16* at = tile + (column + g) * stride + k + 2 * t;
    return {{pair(at), pair(at + 8)}};
  }
  // Results of two steps of eight columns as rows of the next product.
  __device__ static Rows rows_of_results(const float (*c)[4]) {
    return {{pack_bf16(c[0][0], c[0][1]), pack_bf16(c[0][2], c[0][3]), pack_bf16(c[1][0], c[1][1]),
             pack_bf16(c[1][2], c[1][3])}};
  }
  // Columns `column` + 0..7 of a tile, of its rows `k` on: the depth that rows_of_results has.
  __device__ static Columns depth(const Bf16* tile, int stride, int k, int column) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const Bf16* at = tile + (k + 2 * t) * stride + column + g;
    return {{pair(at[0], at[stride]), pair(at[8 * stride], at[9 * stride])}};
  }
  __device__ static void multiply(float (&c)[4], const Rows& a, const Columns& b) {
    multiply_bf16(c, a.words, b.words);
  }
};

template <>
struct Operand<float> {
  static constexpr int kDepth = 8, kPadding = 4;
  struct Rows {
    float values[4];
  };
  struct Columns {
    float values[2];
  };

  __device__ static Rows rows(const float* tile, int stride, int row, int k) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float* at = tile + (row + g) * stride + k + t;
    return {{at[0], at[8 * stride], at[4], at[8 * stride + 4]}};
  }
  __device__ static Columns columns(const float* tile, int stride, int column, int k) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float* at = tile + (column + g) * stride + k + t;
    return {{at[0], at[4]}};
  }
  // A result has columns 2t and 2t + 1 where an operand has t and t + 4. The order of a sum is
  // free: both operands take column 2t for t and 2t + 1 for t + 4.
  __device__ static Rows rows_of_results(const float (*c)[4]) {
    return {{c[0][0], c[0][2], c[0][1], c[0][3]}};
  }
  __device__ static Columns depth(const float* tile, int stride, int k, int column) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float* at = tile + (k + 2 * t) * stride + column + g;
    return {{at[0], at[stride]}};
  }
  // Parts of 11 bits that add up to the value but for 2^-22 of it.
  __device__ static void split(float value, uint32_t& high, uint32_t& low) {
    constexpr uint32_t kUpper = 0xFFFFE000;  // the bits of TF32
    high = __float_as_uint(value) & kUpper;
    low = __float_as_uint(value - __uint_as_float(high)) & kUpper;
  }
  __device__ static void multiply(float (&c)[4], const Rows& a, const Columns& b) {
    uint32_t a_high[4], a_low[4], b_high[2], b_low[2];
    for (int n = 0; n < 4; ++n) split(a.values[n], a_high[n], a_low[n]);
    for (int n = 0; n < 2; ++n) split(b.values[n], b_high[n], b_low[n]);
    multiply_tf32(c, a_low, b_high);
    multiply_tf32(c, a_high, b_low);
    multiply_tf32(c, a_high, b_high);
  }
};

template <typename T, int E>
constexpr int kStride = E + Operand<T>::kPadding;
template <typename T, int E>
constexpr size_t kTileBytes = sizeof(T) * kTile* kStride<T, E>;

// scores += x y^T: of the warp's 16 rows of one tile with all 64 rows of another.
template <typename T, int E>
__device__ inline void add_scores(float (&scores)[kSteps][4], const T* x, const T* y) {
  const int row = threadIdx.x / 32 * kWarpRows;
  for (int k = 0; k < E; k += Operand<T>::kDepth) {
    const auto a = Operand<T>::rows(x, kStride<T, E>, row, k);
#pragma unroll
    for (int n = 0; n < kSteps; ++n) {
      Operand<T>::multiply(scores[n], a, Operand<T>::columns(y, kStride<T, E>, n * 8, k));
    }
  }
}

// sums += weights z: of the warp's 16 rows of weights with a tile of 64 rows. The products of a
// tile are summed on their own first: tensor cores round sums towards zero, which over thousands of
// columns would show.
template <typename T, int E>
__device__ inline void add_weighted(float (&sums)[E / 8][4], const float (&weights)[kSteps][4],
                                    const T* z) {
  constexpr int kStepsOfDepth = Operand<T>::kDepth / 8, kDepths = kSteps / kStepsOfDepth;
  typename Operand<T>::Rows rows[kDepths];
#pragma unroll
  for (int k = 0; k < kDepths; ++k) {
    rows[k] = Operand<T>::rows_of_results(weights + k * kStepsOfDepth);
  }
#pragma unroll
  for (int n = 0; n < E / 8; ++n) {
    float part[4] = {};
#pragma unroll
    for (int k = 0; k < kDepths; ++k) {
      const auto z_columns = Operand<T>::depth(z, kStride<T, E>, k * Operand<T>::kDepth, n * 8);
      Operand<T>::multiply(part, rows[k], z_columns);
    }
    for (int element = 0; element < 4; ++element) sums[n][element] += part[element];
  }
}

// Copies the rows of the tensors that `rows` names (-1: zeros) into a tile, zeros beside head_dim.
template <typename T, int E>
__device__ inline void load_tile(const CudaAttention& p, T* tile, const HeadView<const T>& from,
                                 const RowTile& of, const int* rows) {
  constexpr int kVector = 16 / sizeof(T);
  const auto source = [&](int row) { return from.row(of.batch, of.head, rows[row]); };
  if (p.aligned) {
    for (int n = threadIdx.x; n < kTile * E / kVector; n += kThreads) {
      const int row = n / (E / kVector), e = n % (E / kVector) * kVector;
      const bool inside = rows[row] >= 0 && e < p.head_dim;
      *reinterpret_cast<uint4*>(tile + row * kStride<T, E> + e) =
          inside ? *reinterpret_cast<const uint4*>(source(row) + e) : uint4{0, 0, 0, 0};
    }
    return;
  }
  for (int n = threadIdx.x; n < kTile * E; n += kThreads) {
    const int row = n / E, e = n % E;
    tile[row * kStride<T, E> + e] = rows[row] >= 0 && e < p.head_dim ? source(row)[e] : T(0.0f);
  }
}

// Writes the warp's rows of sums, times factors[0] for row g and factors[1] for row g + 8.
template <typename T, int E>
__device__ inline void store_rows(const CudaAttention& p, const float (&sums)[E / 8][4],
                                  const HeadView<T>& to, const RowTile& tile,
                                  const float (&factors)[2]) {
  const int lane = threadIdx.x % 32, first = tile.begin + threadIdx.x / 32 * kWarpRows + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int index = first + half * 8;
    if (index >= tile.end) continue;
    T* row = to.row(tile.batch, tile.head, tile.runs.row(index));
    for (int n = 0; n < E / 8; ++n) {
      for (int odd = 0; odd < 2; ++odd) {
        const int e = n * 8 + lane % 4 * 2 + odd;
        if (e < p.head_dim) row[e] = T(sums[n][half * 2 + odd] * factors[half]);
      }
    }
  }
}

// The indices of a tile's rows and of its columns in shared memory.
struct Indices {
  int rows[kTile], columns[kTile];                // within the axis, -1: none or masked
  int tensor_rows[kTile], tensor_columns[kTile];  // of the tensors
};

__device__ inline bool is_masked(const Axis& axis, int batch, int index) {
  return axis.mask != nullptr && axis.mask[int64_t{batch} * axis.length + index] == 0;
}

__device__ inline void find_rows(const Axis& rows, const RowTile& tile, Indices& indices) {
  const int n = threadIdx.x;
  if (n >= kTile) return;
  const int row = tile.begin + n;
  const bool used = row < tile.end && !is_masked(rows, tile.batch, row);
  indices.rows[n] = used ? row : -1;
  indices.tensor_rows[n] = used ? static_cast<int>(tile.runs.row(row)) : -1;
}

// The next 64 columns from number `first` on; false when no row may see any of them. All threads
// call it; a barrier lies at its end and at its beginning.
template <bool kRowsAreQueries>
__device__ inline bool find_columns(const Axis& rows, const Axis& columns,
                                    const Columns<kRowsAreQueries>& visible, const RowTile& tile,
                                    int first, Indices& indices) {
  const int n = threadIdx.x;
  int column = n < kTile ? visible.at(first + n) : -1;
  if (column >= 0 &&
      (is_masked(columns, tile.batch, column) || !may_see<kRowsAreQueries>(rows, tile, column))) {
    column = -1;
  }
  __syncthreads();
  if (n < kTile) {
    indices.columns[n] = column;
    indices.tensor_columns[n] = column < 0 ? -1 : static_cast<int>(tile.runs.row(column));
  }
  return __syncthreads_or(column >= 0);
}

}  // namespace lra::kernels::cuda
