// Tiled attention with products of bfloat16 pairs (pairs.h).
#include "kernels/attention/attention_backward.h"
#include "kernels/attention/attention_forward.h"
#include "kernels/gemm/pairs.h"

namespace lra::kernels::avx512_bf16 {
namespace {

using namespace avx512;

// Sixteen words of a row, from word `first` on.
Floats load_words(const HeadRows<Bf16>& rows, int64_t row, int64_t first) {
  fetch_ahead(rows, row, 2 * first);
  if (!rows.is_valid(row)) return zeros();
  const int64_t count = rows.dim - 2 * first;
  const __mmask32 lanes = count >= 32 ? ~0u : (1u << count) - 1;
  return floats_of(_mm512_maskz_loadu_epi16(lanes, rows.row(row) + 2 * first));
}

// Counterpart of FloatProducts in attention_simd.cpp for words of two bfloat16 numbers.
struct PairProducts {
  static constexpr int64_t kWordDepth = 2;
  static int64_t words(int64_t depth) { return (depth + 1) / 2; }

  static void pack_rows(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    const int64_t padded = round_up(rows.dim, kLanes) / kWordDepth;
    for (int64_t i = range.begin; i < range.end; ++i) {
      for (int64_t w = 0; w < padded; w += kLanes) {
        store_lanes(packed + (i - range.begin) * padded + w, lanes_between(0, padded - w),
                    load_words(rows, i, w));
      }
    }
  }

  static void pack_down(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    const int64_t padded = round_up(rows.dim, kLanes);
    for (int64_t i = range.begin; i < range.end; i += kWordDepth) {
      float* to = packed + (i - range.begin) / kWordDepth * padded;
      for (int64_t e = 0; e < rows.dim; e += kLanes) {
        Words pairs = half_down(words_of(load_row(rows, i, e)));
        if (i + 1 < range.end) pairs = bit_or(pairs, words_of(load_row(rows, i + 1, e)));
        store(to + e, floats_of(pairs));
      }
    }
  }

  static void pack_transposed(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    transpose_rows(range, words(rows.dim), packed,
                   [&](int64_t row, int64_t first) { return load_words(rows, row, first); });
  }

  static void multiply(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
    gemm_pairs(size, operands, accumulate);
  }

  static void finish_weights(float* row, int64_t count) { narrow_row(row, count, row); }

  // Pair d of rows takes the place of row d, which is finished by then.
  static TileOperands finish_tile(AlignedBuffer& space, float* weights, float* grads, int64_t rows,
                                  int64_t keys) {
    float* narrow = space.reserve(kQueryTile * kScoreStride);
    for (int64_t i = 0; i < rows; ++i) {
      narrow_row(grads + i * kScoreStride, keys, narrow + i * kScoreStride);
    }
    for (float* tile : {weights, grads}) {
      for (int64_t i = 0; i < rows; i += 2) {
        const float* second = i + 1 < rows ? tile + (i + 1) * kScoreStride : nullptr;
        pair_rows(tile + i * kScoreStride, second, keys, tile + i / 2 * kScoreStride);
      }
    }
    return {narrow, weights, grads};
  }
};

}  // namespace

void attention_forward(const AttentionProblem& problem, const AttentionForward<Bf16>& args) {
  run_forward<PairProducts>(problem, args);
}

void attention_backward(const AttentionProblem& problem, const AttentionBackward<Bf16>& args) {
  run_backward<PairProducts>(problem, args);
}

}  // namespace lra::kernels::avx512_bf16
