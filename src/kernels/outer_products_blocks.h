// How a block of sum_outer_products is made of the small products of gemm.h or pairs.h. Included
// once by each file that has an instruction set for them.
//
// `Products` packs rows of a matrix into words (a float, or two bfloat16 numbers of neighbouring
// rows) and multiplies words.
#pragma once

#include <algorithm>

#include "kernels/aligned_buffer.h"
#include "kernels/gemm.h"
#include "kernels/outer_products.h"
#include "kernels/simd.h"

namespace lra::kernels {

// Rows that are packed at once: 48 columns of B and 16 of A, all that inner loops of products
// read again and again, take 32 KiB.
inline constexpr int64_t kOuterChunk = 128;
static_assert(kOuterRun % kOuterChunk == 0);

// Rows of float that are fetched ahead while others are packed: 8 % of the time of a large product.
inline constexpr int64_t kRowsAhead = 8;

// c = or += run. A template, as is all here, so that each instruction set has its own.
template <typename Products>
void add_run(const float* run, int64_t run_stride, int64_t rows, int64_t columns, bool first,
             float* c, int64_t c_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += avx512::kLanes) {
      const __mmask16 lanes = avx512::lanes_between(0, columns - j);
      __m512 sum = _mm512_loadu_ps(run + i * run_stride + j);
      float* to = c + i * c_stride + j;
      if (!first) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, to), sum);
      _mm512_mask_storeu_ps(to, lanes, sum);
    }
  }
}

// One register block of gemm.h at a time: eight rows by three vectors, so that no block of rows
// crosses a vector of A.
inline constexpr int64_t kBlockRows = 8;
inline constexpr int64_t kBlockVectors = 3;

template <typename Products, typename T>
void sum_outer_products_in_runs(int64_t rows, const MatrixColumns<T>& a, const MatrixColumns<T>& b,
                                float* c, int64_t c_stride) {
  constexpr int64_t kWords = kOuterChunk / Products::kWordDepth;
  // A line more than the words take: otherwise all vectors of a row would lie in one cache set.
  constexpr int64_t kVector = (kWords + 1) * avx512::kLanes;
  AlignedBuffer space_a, space_b, space_run;
  // [vector of columns][word][lane]
  float* packed_a = space_a.reserve(kVector * kOuterRows / avx512::kLanes);
  float* packed_b = space_b.reserve(kVector * kOuterColumns / avx512::kLanes);
  float* run = space_run.reserve(kOuterRows * kOuterColumns);
  constexpr int64_t kColumns = kBlockVectors * avx512::kLanes;
  for (int64_t first = 0; first == 0 || first < rows; first += kOuterRun) {
    const int64_t end = std::min(rows, first + kOuterRun);
    for (int64_t r = first; r == first || r < end; r += kOuterChunk) {
      const int64_t count = std::min(end - r, kOuterChunk);
      const int64_t words = (count + Products::kWordDepth - 1) / Products::kWordDepth;
      Products::pack(a, r, count, kVector, packed_a);
      Products::pack(b, r, count, kVector, packed_b);
      for (int64_t j = 0; j < b.columns; j += kColumns) {
        for (int64_t i = 0; i < a.columns; i += kBlockRows) {
          const float* rows_of_a = packed_a + i / avx512::kLanes * kVector + i % avx512::kLanes;
          Products::multiply(
              {std::min(kBlockRows, a.columns - i), std::min(kColumns, b.columns - j), words},
              {rows_of_a, 1, avx512::kLanes, packed_b + j / avx512::kLanes * kVector,
               avx512::kLanes, kVector, run + i * kOuterColumns + j, kOuterColumns},
              r > first);
        }
      }
    }
    add_run<Products>(run, kOuterColumns, a.columns, b.columns, first == 0, c, c_stride);
  }
}

}  // namespace lra::kernels
