#include "kernels/outer_products_blocks.h"
#include "kernels/pairs.h"

namespace lra::kernels::avx512_bf16 {
namespace {

template <typename Lanes>
__m512i bits_of(Lanes lanes, const Bf16* from) {
  return _mm512_castps_si512(avx512::load_lanes(lanes, from));
}

struct PairWords {
  static constexpr int64_t kWordDepth = 2;

  // As FloatWords::pack; rows 2 w and 2 w + 1 share word w, and a last row alone has zeros.
  static void pack(const MatrixColumns<Bf16>& x, int64_t first, int64_t rows, int64_t vector_stride,
                   float* packed) {
    for (int64_t r = 0; r < rows; r += kWordDepth) {
      const Bf16* row = x.data + (first + r) * x.row_stride;
      const bool has_two = r + 1 < rows;
      avx512::for_each_run(x.columns, [&](int64_t n, auto lanes) {
        __m512i pairs = _mm512_srli_epi32(bits_of(lanes, row + n), 16);
        if (has_two) pairs = _mm512_or_epi32(pairs, bits_of(lanes, row + x.row_stride + n));
        _mm512_storeu_ps(
            packed + n / avx512::kLanes * vector_stride + r / kWordDepth * avx512::kLanes,
            _mm512_castsi512_ps(pairs));
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
