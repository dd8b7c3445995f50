#include "kernels/pointwise/column_sums.h"

#include "base/parallel.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Columns that are summed at once: 128 numbers of each row, and sums that stay in registers.
constexpr int64_t kVectors = 8;
constexpr int64_t kColumns = kVectors * kLanes;

template <typename T>
void add_rows(int64_t rows, int64_t columns, const T* x, const Lanes (&lanes)[kVectors],
              Floats (&sums)[kVectors]) {
  Floats run[kVectors];
  for (Floats& each : run) each = zeros();
  for (int64_t r = 0; r < rows; ++r, x += columns) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      run[v] = run[v] + load_lanes(lanes[v], x + v * kLanes);
    }
  }
  for (int v = 0; v < kVectors; ++v) sums[v] = sums[v] + run[v];
}

}  // namespace

template <typename T>
void column_sums(int64_t rows, int64_t columns, const T* x, float* sums) {
  parallel_for_each((columns + kColumns - 1) / kColumns, [&](int64_t block) {
    const int64_t c = block * kColumns;
    Lanes lanes[kVectors];
    Floats total[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      lanes[v] = lanes_between(0, columns - c - v * kLanes);
      total[v] = zeros();
    }
    for (int64_t first = 0; first < rows; first += kSumRows) {
      add_rows(std::min(kSumRows, rows - first), columns, x + first * columns + c, lanes, total);
    }
    for (int v = 0; v < kVectors; ++v) {
      store_lanes(sums + c + v * kLanes, lanes[v], total[v]);
    }
  });
}

template void column_sums(int64_t, int64_t, const float*, float*);
template void column_sums(int64_t, int64_t, const Bf16*, float*);

}  // namespace lra::kernels::LRA_ISA
