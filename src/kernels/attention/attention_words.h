// What products of attention on words of two bfloat16 numbers share, whether pairs or tiles
// multiply them: their operands, packed (attention_simd.cpp says how), and rounded results of the
// elementwise steps. `Rounding` has narrow() and narrow_two() (simd/tiles.h).
#pragma once

#include "kernels/attention/attention_pack.h"
#include "kernels/attention/attention_slopes.h"

namespace lra::kernels::LRA_ISA {

// Sixteen words of a row, from word `first` on.
inline Floats load_words(const HeadRows<Bf16>& rows, int64_t row, int64_t first) {
  fetch_ahead(rows, row, 2 * first);
  if (!rows.is_valid(row)) return zeros();
  return load_words(rows.row(row) + 2 * first, rows.dim - 2 * first);
}

// Words w of rows row and row + 1, from number `first` on.
inline Floats load_pairs(const HeadRows<Bf16>& rows, KeyRange range, int64_t row, int64_t first) {
  const Words pairs = half_down(words_of(load_row(rows, row, first)));
  if (row + 1 >= range.end) return floats_of(pairs);
  return floats_of(add(pairs, words_of(load_row(rows, row + 1, first))));
}

template <typename Rounding>
struct WordProducts {
  static constexpr int64_t kWordDepth = 2;

  static void pack_rows(const HeadRows<Bf16>& rows, KeyRange range, int64_t row_words,
                        float* packed) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      for (int64_t w = 0; w < row_words; w += kLanes) {
        store_lanes(packed + (i - range.begin) * row_words + w, lanes_between(0, row_words - w),
                    load_words(rows, i, w));
      }
    }
  }

  static void pack_down(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    const int64_t padded = round_up(rows.dim, kLanes);
    for (int64_t i = range.begin; i < range.end; i += kWordDepth) {
      float* to = packed + (i - range.begin) / kWordDepth * padded;
      for (int64_t e = 0; e < rows.dim; e += kLanes) store(to + e, load_pairs(rows, range, i, e));
    }
  }

  static void store_weight(float* row, int64_t v, Floats weight) {
    store_half_words(row + v * kLanes / kWordDepth, Rounding::narrow(weight));
  }

  static void store_slopes(const FinishedTile& to, int64_t row, int64_t v, const Slopes& a,
                           const Slopes& b) {
    const auto weights = Rounding::narrow_two(a.weight, b.weight);
    const auto grads = Rounding::narrow_two(a.grad, b.grad);
    const int64_t pair = row / kWordDepth * kScoreStride + v * kLanes;
    store(to.weights_down + pair, floats_of(weights.pairs));
    store(to.grads_down + pair, floats_of(grads.pairs));
    float* rows = to.rows + row * to.row_stride + v * kLanes / kWordDepth;
    store_half_words(rows, grads.first);
    store_half_words(rows + to.row_stride, grads.second);
  }
};

}  // namespace lra::kernels::LRA_ISA
