// Visibility of queries and keys, as the passes of attention on a CUDA device go through them. Rows
// are queries and columns keys, or (for the gradients of keys and values) the other way round: each
// axis has the same rules, seen from its side.
#pragma once

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"

namespace lra::kernels::cuda {

// Queries or keys.
struct Axis {
  int length = 0;
  int block = 0;  // rows of one block of the lists; the length without lists
  const uint8_t* mask = nullptr;
  // The blocks of the other axis that each block of this one may see; null: all.
  const int64_t* offsets = nullptr;
  const int32_t* blocks = nullptr;
  int before = -1, after = -1;  // row r sees columns r - before to r + after; -1: no limit
  // Row r sees column c if c / column_step < r / step, rows being queries, or > in rows of keys; 0:
  // no such rule.
  int step = 0, column_step = 0;
};

// AttentionProblem as the kernels take it.
struct CudaAttention {
  int heads = 0, head_dim = 0, value_dim = 0, lists = 1;
  int64_t planes = 0;
  Axis queries, keys;
  bool diagonal = false;  // a block sees the one of its number, without lists
  SortedRuns runs;
  float scale = 1;
  bool laplace = false;       // AttentionWeights::kLaplace
  bool shares_table = false;  // one table of score biases for the whole batch
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

// The tile of this block of a kernel. Blocks that read the same part of a table of biases follow
// each other, so that the batch reads it from memory once.
__device__ inline RowTile own_tile(const CudaAttention& p, const Axis& rows) {
  const int index = static_cast<int>(blockIdx.x);
  if (!p.shares_table) return row_tile(p, rows, index);
  const int batch = static_cast<int>(p.planes) / p.heads;
  const int tiles_of_batch = blocks_of(rows) * tiles_of_block(rows) * p.heads;
  return row_tile(p, rows, index % batch * tiles_of_batch + index / batch);
}

// The columns that a tile of rows may see, one after another. In sorted runs these are a short
// span, as neighbors share a bucket.
template <bool kRowsAreQueries>
class Columns {
 public:
  __device__ Columns(const CudaAttention& p, const Axis& rows, const Axis& columns,
                     const RowTile& tile)
      : axis_(columns) {
    if (tile.runs.order != nullptr) {
      take_span_of_runs(tile);
      return;
    }
    if (rows.offsets != nullptr) {
      const int64_t row = int64_t{tile.plane % p.lists} * blocks_of(rows) + tile.block;
      list_ = rows.blocks + rows.offsets[row];
      count_ = static_cast<int>(rows.offsets[row + 1] - rows.offsets[row]) * columns.block;
      return;
    }
    first_ = rows.before < 0 ? 0 : max(0, tile.begin - rows.before);
    int end = rows.after < 0 ? columns.length : min(columns.length, tile.end + rows.after);
    if (p.diagonal) {
      first_ = max(first_, tile.block * columns.block);
      end = min(end, (tile.block + 1) * columns.block);
    }
    if (rows.step > 0 && kRowsAreQueries) {
      end = min(end, (tile.end - 1) / rows.step * rows.column_step);
    } else if (rows.step > 0) {
      first_ = max(first_, (tile.begin / rows.step + 1) * rows.column_step);
    }
    count_ = max(0, end - first_);
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
  // True if the 64 columns from number `index` on are neighbors, given that all of them exist.
  __device__ bool are_neighbors(int index) const {
    return list_ == nullptr || index / axis_.block == (index + kTile - 1) / axis_.block;
  }
  // The first of these if all of them exist and are neighbors, else -1.
  __device__ int first_of_neighbors(int index) const {
    if (index + kTile > count_ || !are_neighbors(index)) return -1;
    const int first = at(index);
    return first >= 0 && first + kTile <= axis_.length ? first : -1;
  }
  __device__ bool contains(int column) const {
    if (list_ == nullptr) return column >= first_ && column < first_ + count_;
    for (int n = 0; n < count_ / axis_.block; ++n) {
      if (list_[n] == column / axis_.block) return column < axis_.length;
    }
    return false;
  }

 private:
  // Takes the columns from the first to the last that a row sees by its run: each lane of a warp
  // looks at some of the queries.
  __device__ void take_span_of_runs(const RowTile& tile) {
    const int lane = threadIdx.x % 32;
    const int32_t *run_begin = tile.runs.begin(), *run_end = tile.runs.end();
    int first = axis_.length, end = 0;
    const auto add = [&](int from, int to) {
      first = min(first, from);
      end = max(end, to);
    };
    if (kRowsAreQueries) {
      for (int query = tile.begin + lane; query < tile.end; query += 32) {
        if (run_end[query] > run_begin[query]) add(run_begin[query], run_end[query]);
      }
    } else {
      for (int query = lane; query < axis_.length; query += 32) {
        if (run_begin[query] < tile.end && run_end[query] > tile.begin) add(query, query + 1);
      }
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      first = min(first, __shfl_xor_sync(~0u, first, distance));
      end = max(end, __shfl_xor_sync(~0u, end, distance));
    }
    first_ = first;
    count_ = max(0, end - first);
  }

  const Axis& axis_;
  const int32_t* list_ = nullptr;
  int first_ = 0, count_ = 0;
};

// True if any row of the tile may see the column, by the window and the runs.
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

// True if a query sees a key, given that no mask hides either and that their blocks may see each
// other.
__device__ inline bool sees(const CudaAttention& p, const RowTile& tile, int query, int key) {
  if (tile.runs.order != nullptr) return sees_in_runs(tile.runs, query, key);
  return (p.queries.before < 0 || key >= query - p.queries.before) &&
         (p.queries.after < 0 || key <= query + p.queries.after) &&
         (p.queries.step == 0 || key / p.queries.column_step < query / p.queries.step);
}

}  // namespace lra::kernels::cuda
