// A block of sum_outer_products on tiles. A chunk of rows of both matrices is packed, the columns
// of A transposed in registers, and each pair of columns of tiles then meets all of A's. Included
// once by each file that has tiles. While tiles multiply, the next chunk comes into the cache: from
// further away its rows take as long as the products.
#pragma once

#include <algorithm>

#include "kernels/aligned_buffer.h"
#include "kernels/gemm/outer_products.h"
#include "kernels/gemm/tile_products.h"

namespace lra::kernels::LRA_ISA {

// Rows that are summed before they are added to C: two tiles of columns of both matrices take 32
// KiB, of 48 in the first-level cache of a processor with tiles.
inline constexpr int64_t kTileChunk = 256;
inline constexpr int64_t kChunkDepth = kTileChunk / kTileDepth;
inline constexpr int64_t kPackedTile = kChunkDepth * kTileSize;  // [depth][16][16] words

// Rows [first, first + rows) of sixteen columns from `column` on: word k of lane n pairs rows 2 k
// and 2 k + 1 of column n. Zeros from the last row to the end of the tile and in the other lanes.
// Adds the rows to `sums` [16] if kSums.
template <bool kTranspose, bool kSums = false>
void pack_outer_tile(const MatrixColumns<Bf16>& x, int64_t first, int64_t rows, int64_t column,
                     float* packed, float* sums = nullptr) {
  const Bf16* from = x.data + first * x.row_stride + column;
  const Lanes lanes = lanes_between(0, x.columns - column);
  const auto row = [&](int64_t r) {
    return r < rows ? widen(load_half_words(lanes, from + r * x.row_stride)) : words_of(zeros());
  };
  Floats words[kTileRows], even = zeros(), odd = zeros();
#pragma GCC unroll 16
  for (int k = 0; k < kTileRows; ++k) {
    const Words first_half = row(2 * k), second_half = half_up(row(2 * k + 1));
    words[k] = floats_of(add(first_half, second_half));
    if constexpr (kSums) {
      even = even + floats_of(half_up(first_half));
      odd = odd + floats_of(second_half);
    }
  }
  if constexpr (kSums) store(sums, load(sums) + (even + odd));
  if constexpr (kTranspose) transpose_16x16(words);
#pragma GCC unroll 16
  for (int k = 0; k < kTileRows; ++k) store(packed + k * kTileWords, words[k]);
}

// Part `n` of `parts` of the rows [first, end) comes into the second-level cache.
inline void fetch_outer_rows(const MatrixColumns<Bf16>& x, int64_t first, int64_t end, int64_t n,
                             int64_t parts) {
  constexpr int64_t kLine = 32, kSecondLevel = 2;
  const int64_t rows = std::max<int64_t>(end - first, 0);
  for (int64_t r = rows * n / parts; r < rows * (n + 1) / parts; ++r) {
    const Bf16* row = x.data + (first + r) * x.row_stride;
    for (int64_t e = 0; e < x.columns; e += kLine) __builtin_prefetch(row + e, 0, kSecondLevel);
  }
}

// packed[column / 16][step][16][16]; sums [columns] as in pack_outer_tile().
template <bool kTranspose, bool kSums = false>
void pack_outer_tiles(const MatrixColumns<Bf16>& x, int64_t first, int64_t rows, float* packed,
                      float* sums = nullptr) {
  for (int64_t d = 0; d * kTileDepth < rows; ++d) {
    for (int64_t column = 0; column < x.columns; column += kTileRows) {
      pack_outer_tile<kTranspose, kSums>(x, first + d * kTileDepth, rows - d * kTileDepth, column,
                                         packed + column / kTileRows * kPackedTile + d * kTileSize,
                                         kSums ? sums + column : nullptr);
    }
  }
}

// c = or += the tiles of a block, which are in `block`: rows of `width` floats.
inline void add_block(const float* block, int64_t width, int64_t rows, int64_t columns, bool first,
                      float* c, int64_t c_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for_each_run(columns, [&](int64_t n, auto lanes) {
      Floats sum = load(block + i * width + n);
      float* to = c + i * c_stride + n;
      if (!first) sum = load_lanes(lanes, to) + sum;
      store_lanes(to, lanes, sum);
    });
  }
}

template <typename Tiles>
void sum_outer_products_on_tiles(int64_t rows, const MatrixColumns<Bf16>& a,
                                 const MatrixColumns<Bf16>& b, float* c, int64_t c_stride,
                                 float* a_sums) {
  thread_local AlignedBuffer space_a, space_b;
  float* packed_a = space_a.reserve(kPackedTile * kOuterRows / kTileRows);
  float* packed_b = space_b.reserve(kPackedTile * kOuterColumns / kTileRows);
  constexpr int64_t kWidth = 2 * kTileWords;
  alignas(64) float block[2 * kTileRows * kWidth];
  const auto tiles_of = [](int64_t columns) { return (columns + kTileRows - 1) / kTileRows; };
  const TileOperands operands{packed_a,    kTileWords, kPackedTile, kTileSize, packed_b, kTileWords,
                              kPackedTile, block,      kWidth,      0,         0};
  const int64_t down = (tiles_of(a.columns) + 1) / 2;
  const int64_t blocks = down * ((tiles_of(b.columns) + 1) / 2);
  Tiles tiles;
  for (int64_t first = 0; first == 0 || first < rows; first += kTileChunk) {
    const int64_t count = std::min(rows - first, kTileChunk), next = first + kTileChunk;
    if (a_sums == nullptr) {
      pack_outer_tiles<true>(a, first, count, packed_a);
    } else {
      alignas(64) float chunk_sums[kOuterRows] = {};
      pack_outer_tiles<true, true>(a, first, count, packed_a, chunk_sums);
      add_block(chunk_sums, 0, 1, a.columns, first == 0, a_sums, 0);
    }
    pack_outer_tiles<false>(b, first, count, packed_b);
    const TileCounts counts{tiles_of(a.columns), tiles_of(b.columns),
                            (count + kTileDepth - 1) / kTileDepth};
    for_each_tile_block(counts, operands,
                        [&]<int kDown, int kAcross>(const TileOperands& o, int64_t i, int64_t j) {
                          for (const auto* x : {&a, &b}) {
                            fetch_outer_rows(*x, next, std::min(rows, next + kTileChunk),
                                             j / 2 * down + i / 2, blocks);
                          }
                          multiply_block<kDown, kAcross>(tiles, counts.depth, o);
                          const int64_t row = i * kTileRows, column = j * kTileWords;
                          add_block(block, kWidth, std::min(kDown * kTileRows, a.columns - row),
                                    std::min(kAcross * kTileWords, b.columns - column), first == 0,
                                    c + row * c_stride + column, c_stride);
                        });
  }
}

}  // namespace lra::kernels::LRA_ISA
