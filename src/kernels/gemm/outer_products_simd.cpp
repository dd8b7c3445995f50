#include "kernels/gemm/outer_products_blocks.h"

namespace lra::kernels::LRA_ISA {
namespace {

struct FloatWords {
  static constexpr int64_t kWordDepth = 1;

  // Word w of column n is packed[n / 16 * vector_stride + w * 16 + n % 16]; zeros from the last
  // column to the end of its vector.
  template <typename T>
  static void pack(const MatrixColumns<T>& x, int64_t first, int64_t rows, int64_t vector_stride,
                   float* packed) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = x.data + (first + r) * x.row_stride;
      const T* ahead = row + std::min(kRowsAhead, rows - 1 - r) * x.row_stride;
      for_each_run(x.columns, [&](int64_t n, auto lanes) {
        __builtin_prefetch(ahead + n);
        store(packed + n / kLanes * vector_stride + r * kLanes, load_lanes(lanes, row + n));
      });
    }
  }

  static void multiply(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
    LRA_ISA::gemm(size, operands, accumulate);
  }
};

}  // namespace

template <typename T>
void sum_outer_products(int64_t rows, const MatrixColumns<T>& a, const MatrixColumns<T>& b,
                        float* c, int64_t c_stride) {
  sum_outer_products_in_runs<FloatWords>(rows, a, b, c, c_stride);
}

template void sum_outer_products(int64_t, const MatrixColumns<float>&, const MatrixColumns<float>&,
                                 float*, int64_t);
template void sum_outer_products(int64_t, const MatrixColumns<Bf16>&, const MatrixColumns<Bf16>&,
                                 float*, int64_t);

}  // namespace lra::kernels::LRA_ISA
