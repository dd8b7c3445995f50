// Composes a block of sum_outer_products of the small products of gemm.h or pairs.h. Included once
// by each file that has an instruction set for them.
//
// `Products` packs rows of a matrix into words (a float, or two bfloat16 numbers of neighboring
// rows) and multiplies words.
#pragma once

#include <algorithm>

#include "kernels/aligned_buffer.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/outer_products.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

static_assert(kOuterRun % OuterBlocks::kChunk == 0);

// Rows of float that are fetched ahead while others are packed: 8 % of the time of a large product.
inline constexpr int64_t kRowsAhead = 8;

// c = or += run
inline void add_run(const float* run, int64_t run_stride, int64_t rows, int64_t columns, bool first,
                    float* c, int64_t c_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      const Lanes lanes = lanes_between(0, columns - j);
      Floats sum = load(run + i * run_stride + j);
      float* to = c + i * c_stride + j;
      if (!first) sum = load_lanes(lanes, to) + sum;
      store_lanes(to, lanes, sum);
    }
  }
}

template <typename Products, typename T>
void sum_outer_products_in_runs(int64_t rows, const MatrixColumns<T>& a, const MatrixColumns<T>& b,
                                float* c, int64_t c_stride) {
  constexpr int64_t kWords = OuterBlocks::kChunk / Products::kWordDepth;
  // One cache line more than the words need: otherwise all vectors of a row would share one cache
  // set.
  constexpr int64_t kVector = (kWords + 1) * kLanes;
  thread_local AlignedBuffer space_a, space_b, space_run;
  // [vector of columns][word][lane]
  float* packed_a = space_a.reserve(kVector * kOuterRows / kLanes);
  float* packed_b = space_b.reserve(kVector * kOuterColumns / kLanes);
  float* run = space_run.reserve(kOuterRows * kOuterColumns);
  constexpr int64_t kColumns = OuterBlocks::kVectors * kLanes;
  for (int64_t first = 0; first == 0 || first < rows; first += kOuterRun) {
    const int64_t end = std::min(rows, first + kOuterRun);
    for (int64_t r = first; r == first || r < end; r += OuterBlocks::kChunk) {
      const int64_t count = std::min(end - r, OuterBlocks::kChunk);
      const int64_t words = (count + Products::kWordDepth - 1) / Products::kWordDepth;
      Products::pack(a, r, count, kVector, packed_a);
      Products::pack(b, r, count, kVector, packed_b);
      for (int64_t j = 0; j < b.columns; j += kColumns) {
        for (int64_t i = 0; i < a.columns; i += OuterBlocks::kRows) {
          const float* rows_of_a = packed_a + i / kLanes * kVector + i % kLanes;
          Products::multiply({std::min(OuterBlocks::kRows, a.columns - i),
                              std::min(kColumns, b.columns - j), words},
                             {rows_of_a, 1, kLanes, packed_b + j / kLanes * kVector, kLanes,
                              kVector, run + i * kOuterColumns + j, kOuterColumns},
                             r > first);
        }
      }
    }
    add_run(run, kOuterColumns, a.columns, b.columns, first == 0, c, c_stride);
  }
}

}  // namespace lra::kernels::LRA_ISA
