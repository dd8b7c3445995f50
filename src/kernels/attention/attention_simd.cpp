// Tiled attention with products in float.
#include "kernels/attention/attention_backward.h"
#include "kernels/attention/attention_forward.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Products of attention on floats, with the interface that attention_forward.h and
// attention_backward.h require of `Products`; an object is made on each thread for a tile of
// queries. Operands are made of words of 32 bits: a float, or two bfloat16 numbers that are
// adjacent in depth. Masked rows, rows from `length` on and padding are 0; `padded` is dim rounded
// up to 16. Ranges of transposed rows begin and end at multiples of 16.
struct FloatProducts {
  static constexpr int64_t kWordDepth = 1;             // numbers in a word
  static constexpr int64_t kForwardRows = kQueryTile;  // of a tile that are computed at a time
  static constexpr int64_t kScoreRows = kQueryTile;    // the same, backward
  static constexpr int64_t kQueryStep = 1;  // rows that depth along the queries is made of
  static constexpr int64_t kSpareRows = 0;  // rows of zeros that are read after the last sixteen
  // Words of a row with depth along E: that are multiplied, and its distance to the next.
  static int64_t words(int64_t dim) { return dim; }
  static int64_t row_words(int64_t dim) { return round_up(dim, kLanes); }

  // Depth along E: packed[(row - range.begin) * row_words(dim) + word].
  template <typename T>
  static void pack_rows(const HeadRows<T>& rows, KeyRange range, float* packed) {
    const int64_t padded = round_up(rows.dim, kLanes);
    for (int64_t i = range.begin; i < range.end; ++i) {
      for (int64_t e = 0; e < rows.dim; e += kLanes) {
        store(packed + (i - range.begin) * padded + e, load_row(rows, i, e));
      }
    }
  }

  // Depth along the rows: packed[(row - range.begin) / kWordDepth * padded + e].
  template <typename T>
  static void pack_down(const HeadRows<T>& rows, KeyRange range, float* packed) {
    pack_rows(rows, range, packed);
  }

  // Depth along E, in blocks of sixteen rows:
  // packed[(row / 16 * words(dim) + word) * 16 + row % 16].
  template <typename T>
  static void pack_transposed(const HeadRows<T>& rows, KeyRange range, float* packed) {
    transpose_rows(range, rows.dim, packed,
                   [&](int64_t row, int64_t first) { return load_row(rows, row, first); });
  }

  void multiply(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
    LRA_ISA::gemm(size, operands, accumulate);
  }

  // Adds to the gradients of keys or values, rows `padded` apart: the tile of [queries, keys],
  // transposed, times the queries' rows. `size` is in numbers.
  void add_down(const GemmSize& size, const float* tile, const float* rows, float* sums) {
    const int64_t padded = round_up(size.columns, kLanes);
    multiply(size, {tile, 1, kScoreStride, rows, padded, kLanes, sums, padded}, true);
  }

  // Vector v of a row of weights as the left operand of the product with the values, in place of
  // the scores; what that product reads after the last.
  static void store_weight(float* row, int64_t v, Floats weight) {
    store(row + v * kLanes, weight);
  }
  static void end_weights(float*, int64_t /*vectors*/) {}

  // Vector v of row `row` of a finished tile; what its products read after the last row and vector.
  static void store_slopes(const FinishedTile& to, int64_t row, int64_t v, const Slopes& slopes) {
    store(to.weights_down + row * kScoreStride + v * kLanes, slopes.weight);
    store(to.grads_down + row * kScoreStride + v * kLanes, slopes.grad);
  }
  static void end_tile(const FinishedTile&, int64_t /*rows*/, int64_t /*vectors*/) {}

  template <typename T>
  static void store_keys(const float* sums, KeyRange range, int64_t dim,
                         const AttentionPlane& plane, const HeadView<T>& to) {
    unpack_rows(sums, range, dim, plane, to);
  }
};

}  // namespace

template <typename T>
void attention_forward(const AttentionProblem& problem, const AttentionForward<T>& args) {
  run_forward<FloatProducts>(problem, args);
}

template <typename T>
void attention_backward(const AttentionProblem& problem, const AttentionBackward<T>& args) {
  run_backward<FloatProducts>(problem, args);
}

template void attention_forward(const AttentionProblem&, const AttentionForward<float>&);
template void attention_forward(const AttentionProblem&, const AttentionForward<Bf16>&);
template void attention_backward(const AttentionProblem&, const AttentionBackward<float>&);
template void attention_backward(const AttentionProblem&, const AttentionBackward<Bf16>&);

}  // namespace lra::kernels::LRA_ISA
