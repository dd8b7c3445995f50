// Tiled attention with products in float.
#include "kernels/attention/attention_backward.h"
#include "kernels/attention/attention_forward.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Products of attention on floats, with the interface that attention_forward.h and
// attention_backward.h require of `Products`. Operands are made of words of 32 bits: a float, or
// two bfloat16 numbers that are adjacent in depth. Masked rows, rows from `length` on and padding
// are 0; `padded` is dim rounded up to 16. Ranges of transposed rows begin and end at multiples of
// 16.
struct FloatProducts {
  static constexpr int64_t kWordDepth = 1;  // numbers in a word
  static int64_t words(int64_t depth) { return depth; }

  // Depth along E: packed[(row - range.begin) * padded / kWordDepth + word].
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

  static void multiply(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
    LRA_ISA::gemm(size, operands, accumulate);
  }

  // Makes a row of weights the left operand of the product with the values.
  static void finish_weights(float*, int64_t) {}

  // The same for the three products of the backward pass. `keys` is the width of the tile, whose
  // rows are kScoreStride apart.
  static TileOperands finish_tile(AlignedBuffer&, float* weights, float* grads, int64_t /*rows*/,
                                  int64_t /*keys*/) {
    return {grads, weights, grads};
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
