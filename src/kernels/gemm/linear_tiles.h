// linear_rows() on tiles. The matrix is packed once; then blocks of 32 rows, packed by the thread
// that has them, meet all of its columns. Rows are packed, too: loads of a tile whose rows are far
// apart take twice as long as the products. Included once by each file that has tiles.
#pragma once

#include <algorithm>

#include "base/parallel.h"
#include "kernels/aligned_buffer.h"
#include "kernels/gemm/linear.h"
#include "kernels/gemm/outer_products_tiles.h"
#include "kernels/gemm/tile_products.h"
#include "kernels/simd/gelu.h"

namespace lra::kernels::LRA_ISA {

template <typename Tiles>
class LinearOnTiles {
 public:
  explicit LinearOnTiles(const LinearRows& problem)
      : p_(problem),
        steps_((p_.depth + kTileDepth - 1) / kTileDepth),
        column_tiles_((p_.columns + kTileWords - 1) / kTileWords) {}

  void run() {
    thread_local AlignedBuffer space_w, space_bias;
    w_ = space_w.reserve(column_tiles_ * steps_ * kTileSize);
    bias_ = space_bias.reserve(column_tiles_ * kTileWords);
    std::fill_n(bias_, column_tiles_ * kTileWords, 0.0f);
    if (p_.bias != nullptr) std::copy_n(p_.bias, p_.columns, bias_);
    constexpr int64_t kTilesAtLeast = 64, kBlocksAtLeast = 4;
    parallel_ranges(column_tiles_ * steps_, kTilesAtLeast, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) pack_w(n / steps_, n % steps_);
    });
    parallel_ranges((p_.rows + kBlockRows - 1) / kBlockRows, kBlocksAtLeast,
                    [&](int64_t begin, int64_t end) { run_blocks(begin, end); });
  }

 private:
  static constexpr int64_t kBlockRows = 2 * kTileRows, kBlockColumns = 2 * kTileWords;

  // Step d of sixteen columns: word k of lane n pairs numbers 2 k and 2 k + 1 of column n.
  void pack_w(int64_t tile, int64_t d) const {
    const int64_t column = tile * kTileWords, first = d * kTileDepth;
    float* to = w_ + (tile * steps_ + d) * kTileSize;
    if (p_.w_column == 1) {
      pack_outer_tile<false>({p_.w, p_.w_depth, p_.columns}, first, p_.depth - first, column, to);
      return;
    }
    Floats words[kTileRows];
    for (int64_t n = 0; n < kTileRows; ++n) {
      const bool exists = column + n < p_.columns;
      words[n] = exists ? load_words(p_.w + (column + n) * p_.w_column + first, p_.depth - first)
                        : zeros();
    }
    transpose_16x16(words);
    for (int64_t k = 0; k < kTileRows; ++k) store(to + k * kTileWords, words[k]);
  }

  void run_blocks(int64_t begin, int64_t end) const {
    thread_local AlignedBuffer space_x;
    float* const x = space_x.reserve(2 * steps_ * kTileSize);
    alignas(64) float block[kBlockRows * kBlockColumns];
    const TileOperands operands{x,
                                kTileWords,
                                steps_ * kTileSize,
                                kTileSize,
                                w_,
                                kTileWords,
                                steps_ * kTileSize,
                                block,
                                kBlockColumns,
                                0,
                                0};
    Tiles tiles;
    for (int64_t b = begin; b < end; ++b) {
      const int64_t row = b * kBlockRows, rows = std::min(kBlockRows, p_.rows - row);
      pack_x(row, rows, x);
      const TileCounts counts{(rows + kTileRows - 1) / kTileRows, column_tiles_, steps_};
      for_each_tile_block(
          counts, operands, [&]<int kDown, int kAcross>(const TileOperands& o, int64_t, int64_t j) {
            multiply_block<kDown, kAcross>(tiles, steps_, o);
            p_.gelu ? finish<true>(block, row, rows, j) : finish<false>(block, row, rows, j);
          });
    }
  }

  void pack_x(int64_t row, int64_t rows, float* x) const {
    for (int64_t r = 0; r < kBlockRows; ++r) {
      float* to = x + r / kTileRows * steps_ * kTileSize + r % kTileRows * kTileWords;
      const Bf16* from = p_.x + (row + std::min(r, rows - 1)) * p_.x_row;
      for (int64_t d = 0; d < steps_; ++d) {
        store(to + d * kTileSize, load_words(from + d * kTileDepth, p_.depth - d * kTileDepth));
      }
    }
  }

  // The sums of one or two tiles of columns from `tile` on.
  template <bool kGelu>
  void finish(const float* block, int64_t row, int64_t rows, int64_t tile) const {
    const int64_t column = tile * kTileWords, columns = p_.columns - column;
    const auto value = [&](int64_t r, int64_t n) {
      const Floats y = load(block + r * kBlockColumns + n) + load(bias_ + column + n);
      return kGelu ? y * gelu_gate(y).value : y;
    };
    Bf16* to = p_.y + row * p_.y_row + column;
    if (columns >= kBlockColumns) {
      for (int64_t r = 0; r < rows; ++r, to += p_.y_row) {
        const auto both = Tiles::narrow_two(value(r, 0), value(r, kTileWords));
        store_half_words(to, both.first);
        store_half_words(to + kTileWords, both.second);
      }
      return;
    }
    for (int64_t r = 0; r < rows; ++r, to += p_.y_row) {
      for (int64_t n = 0; n < columns; n += kTileWords) {
        store_half_words(to + n, lanes_between(0, columns - n), Tiles::narrow(value(r, n)));
      }
    }
  }

  const LinearRows& p_;
  const int64_t steps_, column_tiles_;
  float *w_ = nullptr, *bias_ = nullptr;
};

}  // namespace lra::kernels::LRA_ISA
