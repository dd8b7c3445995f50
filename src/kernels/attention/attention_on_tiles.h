// Products of attention on tiles of bfloat16. Included once by each file that has tiles.
#pragma once

#include "kernels/attention/attention_backward.h"
#include "kernels/attention/attention_forward.h"
#include "kernels/attention/attention_words.h"
#include "kernels/gemm/tile_products.h"

namespace lra::kernels::LRA_ISA {

// Counterpart of FloatProducts in attention_simd.cpp. Depth is a multiple of 32: rows along E and
// pairs of rows of queries and keys end with zeros. Gradients of keys and values are summed
// transposed, in blocks [S / 16][padded][16], because the words that pair queries are a right
// operand; the queries' rows are the left one, in blocks [32 queries][padded][16 words].
template <typename Tiles>
class TileProducts : public WordProducts<Tiles> {
 public:
  using WordProducts<Tiles>::kWordDepth;
  // The scores of 32 queries, or in the backward pass those of sixteen and the gradients of their
  // weights, take 34 KiB of the 48 in the first-level cache of a processor with tiles.
  static constexpr int64_t kForwardRows = 2 * kTileRows;
  static constexpr int64_t kScoreRows = kTileRows;
  static constexpr int64_t kQueryStep = kTileDepth;
  static constexpr int64_t kSpareRows = kTileRows;
  static int64_t words(int64_t dim) { return round_up(dim, kTileDepth) / kWordDepth; }
  static int64_t row_words(int64_t dim) { return words(dim); }

  static void pack_rows(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    WordProducts<Tiles>::pack_rows(rows, range, words(rows.dim), packed);
  }

  static void pack_queries_down(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    const int64_t padded = round_up(rows.dim, kLanes);
    for (int64_t i = range.begin; i < range.end; i += kTileDepth) {
      for (int64_t e = 0; e < padded; e += kLanes, packed += kTileSize) {
        Floats block[kLanes];
        for (int64_t w = 0; w < kLanes; ++w) {
          const int64_t row = i + kWordDepth * w;
          block[w] = row < range.end ? load_pairs(rows, range, row, e) : zeros();
        }
        transpose_16x16(block);
        for (int64_t n = 0; n < kLanes; ++n) store(packed + n * kTileWords, block[n]);
      }
    }
  }

  static void pack_transposed(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    transpose_rows(range, words(rows.dim), packed,
                   [&](int64_t row, int64_t first) { return load_words(rows, row, first); });
  }

  // Whole tiles: C has room for sixteen rows at a time, and what A and B hold up to sixteen words
  // is 0 in one of them and finite in the other.
  void multiply(const GemmSize& size, const GemmOperands& o, bool accumulate) {
    multiply_tiles(
        tiles_,
        {up(size.rows, kTileRows), up(size.columns, kTileWords), up(size.depth, kTileWords)},
        {o.a, o.a_row, kTileRows * o.a_row, kTileWords, o.b, o.b_depth, o.b_vector, o.c, o.c_row,
         kTileRows * o.c_row, kTileWords},
        accumulate);
  }

  void add_down(const GemmSize& size, const float* tile, const float* rows, float* sums) {
    const int64_t padded = round_up(size.columns, kTileRows);
    multiply_tiles(tiles_,
                   {padded / kTileRows, up(size.rows, kTileWords), up(size.depth, kTileDepth)},
                   {rows, kTileWords, kTileSize, padded * kTileWords, tile, kScoreStride,
                    kTileWords, sums, kTileWords, kTileSize, padded * kTileWords},
                   true);
  }

  // An odd number of vectors ends inside a step of depth.
  static void end_weights(float* row, int64_t vectors) {
    if (vectors % 2 != 0)
      store_half_words(row + vectors * kLanes / kWordDepth, upper_halves(words_of(zeros())));
  }

  static void end_tile(const FinishedTile& to, int64_t rows, int64_t vectors) {
    for (int64_t i = 0; i < rows; ++i) end_weights(to.rows + i * to.row_stride, vectors);
    const int64_t end = round_up(rows, kQueryStep) / kWordDepth;
    for (int64_t w = (rows + 1) / kWordDepth; w < end; ++w) {
      for (float* down : {to.weights_down, to.grads_down}) {
        std::fill_n(down + w * kScoreStride, vectors * kLanes, 0.0f);
      }
    }
  }

  // `range` begins at a multiple of sixteen.
  static void store_keys(const float* sums, KeyRange range, int64_t dim,
                         const AttentionPlane& plane, const HeadView<Bf16>& to) {
    const int64_t padded = round_up(dim, kLanes);
    for (int64_t j = range.begin; j < range.end; j += kLanes) {
      for (int64_t e = 0; e < padded; e += kLanes) {
        Floats block[kLanes];
        for (int64_t n = 0; n < kLanes; ++n) block[n] = load(sums + j * padded + (e + n) * kLanes);
        transpose_16x16(block);
        for (int64_t n = 0; n < kLanes && j + n < range.end; ++n) {
          store_lanes(to.row(plane.batch, plane.head, plane.runs.row(j + n)) + e,
                      lanes_between(0, dim - e), block[n]);
        }
      }
    }
  }

 private:
  static int64_t up(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

  Tiles tiles_;
};

}  // namespace lra::kernels::LRA_ISA
