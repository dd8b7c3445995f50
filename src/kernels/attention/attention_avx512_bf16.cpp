// Tiled attention with products of bfloat16 pairs (pairs.h).
#include "kernels/attention/attention_backward.h"
#include "kernels/attention/attention_forward.h"
#include "kernels/attention/attention_words.h"
#include "kernels/gemm/pairs.h"
#include "kernels/simd/bf16_avx512.h"

namespace lra::kernels::avx512_bf16 {
namespace {

using namespace avx512;

struct Rounding {
  static HalfWords narrow(Floats x) { return avx512_bf16::narrow(x); }
  static NarrowTwo narrow_two(Floats first, Floats second) {
    return avx512_bf16::narrow_two(first, second);
  }
};

// Counterpart of FloatProducts in attention_simd.cpp.
struct PairProducts : WordProducts<Rounding> {
  static constexpr int64_t kForwardRows = kQueryTile;
  static constexpr int64_t kScoreRows = kQueryTile;
  static constexpr int64_t kQueryStep = 2;
  static constexpr int64_t kSpareRows = 0;
  static int64_t words(int64_t dim) { return (dim + 1) / 2; }
  static int64_t row_words(int64_t dim) { return round_up(dim, kLanes) / kWordDepth; }

  static void pack_rows(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    WordProducts::pack_rows(rows, range, row_words(rows.dim), packed);
  }
  static void pack_queries_down(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    pack_down(rows, range, packed);
  }
  static void pack_transposed(const HeadRows<Bf16>& rows, KeyRange range, float* packed) {
    transpose_rows(range, words(rows.dim), packed,
                   [&](int64_t row, int64_t first) { return load_words(rows, row, first); });
  }

  void multiply(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
    gemm_pairs(size, operands, accumulate);
  }
  void add_down(const GemmSize& size, const float* tile, const float* rows, float* sums) {
    const int64_t padded = round_up(size.columns, kLanes);
    multiply({size.rows, size.columns, (size.depth + 1) / kWordDepth},
             {tile, 1, kScoreStride, rows, padded, kLanes, sums, padded}, true);
  }

  static void end_weights(float*, int64_t /*vectors*/) {}
  static void end_tile(const FinishedTile&, int64_t /*rows*/, int64_t /*vectors*/) {}

  static void store_keys(const float* sums, KeyRange range, int64_t dim,
                         const AttentionPlane& plane, const HeadView<Bf16>& to) {
    unpack_rows(sums, range, dim, plane, to);
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
