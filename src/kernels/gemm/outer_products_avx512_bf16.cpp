#include "kernels/gemm/outer_products_blocks.h"
#include "kernels/gemm/pairs.h"

namespace lra::kernels::avx512_bf16 {
namespace {

using namespace avx512;

struct PairWords {
  static constexpr int64_t kWordDepth = 2;

  // Packs like FloatWords::pack; rows 2 w and 2 w + 1 share word w, and a last row alone is paired
  // with zeros.
  static void pack(const MatrixColumns<Bf16>& x, int64_t first, int64_t rows, int64_t vector_stride,
                   float* packed) {
    for (int64_t r = 0; r < rows; r += kWordDepth) {
      const Bf16* row = x.data + (first + r) * x.row_stride;
      const bool has_two = r + 1 < rows;
      for_each_run(x.columns, [&](int64_t n, auto lanes) {
        Words pairs = half_down(words_of(load_lanes(lanes, row + n)));
        if (has_two) pairs = bit_or(pairs, words_of(load_lanes(lanes, row + x.row_stride + n)));
        store(packed + n / kLanes * vector_stride + r / kWordDepth * kLanes, floats_of(pairs));
      });
    }
  }

  static void multiply(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
    gemm_pairs(size, operands, accumulate);
  }
};

}  // namespace

void sum_outer_products(int64_t rows, const MatrixColumns<Bf16>& a, const MatrixColumns<Bf16>& b,
                        float* c, int64_t c_stride) {
  sum_outer_products_in_runs<PairWords>(rows, a, b, c, c_stride);
}

}  // namespace lra::kernels::avx512_bf16
