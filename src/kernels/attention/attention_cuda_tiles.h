// Tiles of 64 queries or keys in shared memory, used by all passes of attention on a CUDA device.
//
// A block of four warps keeps one tile of rows and goes through the tiles of columns that the rows
// may see. The columns of a tile are gathered: the next 64 that a block list names, so lists of
// short blocks leave no lanes idle.
#pragma once

#include "kernels/attention/attention_cuda_columns.h"

namespace lra::kernels::cuda {

// The rows or the columns of a tile, in shared memory.
struct Indices {
  int axis[kTile];    // within the axis, -1: none or masked
  int tensor[kTile];  // of the tensors
  // Columns only: true if every row sees every one of them, so that no rule has to be evaluated;
  // and the first column if they are neighbors, else -1.
  bool seen_by_all;
  int first;
};

// Begins to copy the rows of the tensors that `rows` names (-1: zeros) into a tile, with zeros
// beyond their width, that of keys or of values. They are there after wait_for_copies() and a
// barrier. If `first` is not -1, the rows are the 64 from it on, and `rows` is not read.
template <typename T, int E>
__device__ inline void load_tile(const CudaAttention& p, int dim, T* tile,
                                 const HeadView<const T>& from, const RowTile& of, const int* rows,
                                 int first = -1) {
  constexpr int kVector = 16 / sizeof(T), kVectors = E / kVector;  // of a row
  static_assert(kTile * kVectors % kThreads == 0);
  constexpr int kTurns = kTile * kVectors / kThreads;
  const T* plane = from.row(of.batch, of.head, 0);
  if (p.aligned && first >= 0 && kThreads % kVectors == 0) {
    constexpr int kRows = kThreads / kVectors;  // of a turn
    const int row = static_cast<int>(threadIdx.x) / kVectors;
    const int e = static_cast<int>(threadIdx.x) % kVectors * kVector;
    const bool inside = e < dim;
    const T* at = plane + (first + row) * from.row_stride + (inside ? e : 0);
    T* to = tile + row * kStride<T, E> + e;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      copy_16_bytes(to + turn * kRows * kStride<T, E>, at, inside);
      at += kRows * from.row_stride;
    }
    return;
  }
  const auto row_of = [&](int n) { return first >= 0 ? first + n : rows[n]; };
  if (p.aligned) {
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int n = turn * kThreads + static_cast<int>(threadIdx.x);
      const int to = n / kVectors, row = row_of(to), e = n % kVectors * kVector;
      const bool inside = row >= 0 && e < dim;
      copy_16_bytes(tile + to * kStride<T, E> + e, plane + (inside ? row * from.row_stride + e : 0),
                    inside);
    }
    return;
  }
  for (int n = threadIdx.x; n < kTile * E; n += kThreads) {
    const int to = n / E, row = row_of(to), e = n % E;
    const bool inside = row >= 0 && e < dim;
    tile[to * kStride<T, E> + e] = inside ? plane[row * from.row_stride + e] : T(0.0f);
  }
}

// Writes the warp's rows of sums, times factors[0] for row g and factors[1] for row g + 8.
template <typename T, int E>
__device__ inline void store_rows(int dim, const float (&sums)[E / 8][4], const HeadView<T>& to,
                                  const RowTile& tile, const float (&factors)[2]) {
  const int lane = threadIdx.x % 32, first = tile.begin + threadIdx.x / 32 * kWarpRows + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int index = first + half * 8;
    if (index >= tile.end) continue;
    T* row = to.row(tile.batch, tile.head, tile.runs.row(index));
    for (int n = 0; n < E / 8; ++n) {
      for (int odd = 0; odd < 2; ++odd) {
        const int e = n * 8 + lane % 4 * 2 + odd;
        if (e < dim) row[e] = T(sums[n][half * 2 + odd] * factors[half]);
      }
    }
  }
}

__device__ inline bool is_masked(const Axis& axis, int batch, int index) {
  return axis.mask != nullptr && axis.mask[int64_t{batch} * axis.length + index] == 0;
}

// Returns whether all rows are used. All threads call it; it ends with a barrier.
__device__ inline bool find_rows(const Axis& rows, const RowTile& tile, Indices& indices) {
  const int n = threadIdx.x, row = tile.begin + n;
  const bool used = n < kTile && row < tile.end && !is_masked(rows, tile.batch, row);
  if (n < kTile) {
    indices.axis[n] = used ? row : -1;
    indices.tensor[n] = used ? static_cast<int>(tile.runs.row(row)) : -1;
  }
  return __syncthreads_count(used) == tile.end - tile.begin;
}

// Goes through the columns that a tile of rows may see, 64 at a time, leaving out those of which no
// row may see any.
template <bool kRowsAreQueries>
class ColumnTiles {
 public:
  __device__ ColumnTiles(const CudaAttention& p, const Axis& rows, const Axis& columns,
                         const RowTile& tile, bool all_rows_used)
      : rows_(rows),
        axis_(columns),
        tile_(tile),
        columns_(p, rows, columns, tile),
        // A tile without rules takes the scale after the largest score was found.
        may_see_all_(all_rows_used && tile.runs.order == nullptr && p.scale > 0) {}

  // Writes the indices of the next ones; false when there are none. All threads call it. Barriers
  // lie before the indices are written and, if first() is -1, after.
  __device__ bool next(Indices& indices) {
    for (; first_ < columns_.count(); first_ += kTile) {
      const int first = columns_.first_of_neighbors(first_);
      if (first >= 0 && is_outside_windows(first)) continue;
      if (all_are_used(first)) {
        write_neighbors(indices, first);
      } else if (!write_each(indices)) {
        continue;
      }
      first_ += kTile;
      return true;
    }
    __syncthreads();
    return false;
  }
  // The first of the columns that next() found if all 64 are there and neighbors, else -1.
  __device__ int first() const { return neighbors_from_; }

 private:
  // True if no row may see any of the 64 columns from `first` on.
  __device__ bool is_outside_windows(int first) const {
    return (rows_.before >= 0 && first + kTile <= tile_.begin - rows_.before) ||
           (rows_.after >= 0 && first > tile_.end - 1 + rows_.after);
  }

  // Ends with a barrier if it is true.
  __device__ bool all_are_used(int first) const {
    if (first < 0 || tile_.runs.order != nullptr) return false;
    const int n = threadIdx.x;
    return __syncthreads_count(n < kTile && is_masked(axis_, tile_.batch, first + n)) == 0;
  }

  __device__ void write_neighbors(Indices& indices, int first) {
    neighbors_from_ = first;
    const int n = threadIdx.x;
    if (n < kTile) indices.axis[n] = indices.tensor[n] = first + n;
    if (n == 0) {
      indices.seen_by_all =
          may_see_all_ && in_all_windows(first) && in_all_windows(first + kTile - 1);
      indices.first = first;
    }
  }

  // Returns whether any row may see any of them.
  __device__ bool write_each(Indices& indices) {
    neighbors_from_ = -1;
    const int n = threadIdx.x;
    int column = n < kTile ? columns_.at(first_ + n) : -1;
    if (column >= 0 && (is_masked(axis_, tile_.batch, column) ||
                        !may_see<kRowsAreQueries>(rows_, tile_, column))) {
      column = -1;
    }
    const int num_seen_by_all = __syncthreads_count(column >= 0 && in_all_windows(column));
    if (n < kTile) {
      indices.axis[n] = column;
      indices.tensor[n] = column < 0 ? -1 : static_cast<int>(tile_.runs.row(column));
    }
    if (n == 0) {
      indices.seen_by_all = num_seen_by_all == kTile && may_see_all_;
      indices.first = columns_.are_neighbors(first_) ? columns_.at(first_) : -1;
    }
    return __syncthreads_count(column >= 0) != 0;
  }

  __device__ bool in_all_windows(int column) const {
    if (rows_.step > 0) {
      const int step = column / rows_.column_step;
      if (kRowsAreQueries ? step >= tile_.begin / rows_.step
                          : step <= (tile_.end - 1) / rows_.step) {
        return false;
      }
    }
    return (rows_.before < 0 || column >= tile_.end - 1 - rows_.before) &&
           (rows_.after < 0 || column <= tile_.begin + rows_.after);
  }

  const Axis& rows_;
  const Axis& axis_;
  const RowTile& tile_;
  const Columns<kRowsAreQueries> columns_;
  const bool may_see_all_;
  int first_ = 0, neighbors_from_ = -1;
};

// Calls load(slot, first) for tiles of columns, whose indices are indices[slot], which are there
// only if `first`, that of ColumnTiles, is -1; and compute(slot) once they are loaded. With two
// slots the next tile is loaded while one is computed.
template <int kSlots, bool kRowsAreQueries, typename Load, typename Compute>
__device__ inline void for_each_tile(ColumnTiles<kRowsAreQueries>& tiles,
                                     Indices (&indices)[kSlots], Load load, Compute compute) {
  int slot = 0;
  const auto begin_next = [&](int to) {
    const bool found = tiles.next(indices[to]);
    if (found) load(to, tiles.first());
    return found;
  };
  for (bool more = begin_next(0); more;) {
    wait_for_copies();
    if constexpr (kSlots == 2) {
      more = begin_next(slot ^ 1);  // its barrier is that of the tile that was waited for
      compute(slot);
      slot ^= 1;
    } else {
      __syncthreads();
      compute(slot);
      more = begin_next(slot);
    }
  }
  wait_for_copies();
}

}  // namespace lra::kernels::cuda
