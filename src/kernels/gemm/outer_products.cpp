#include "kernels/gemm/outer_products.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/choice.h"

namespace lra::kernels {

template <typename T>
void sum_outer_products(int64_t rows, const MatrixColumns<T>& a, const MatrixColumns<T>& b,
                        Wide<T>* c, int64_t c_stride) {
  LRA_CHECK_LE(a.columns, kOuterRows);
  LRA_CHECK_LE(b.columns, kOuterColumns);
  if constexpr (std::is_same_v<T, Bf16>) {
    const Isa isa = choose(Op::kOuterProductsBf16);
    LRA_RETURN_PAIRS_CALL(isa, sum_outer_products(rows, a, b, c, c_stride));
  } else if constexpr (std::is_same_v<T, float>) {
    LRA_RETURN_CALL(choose(Op::kOuterProducts), sum_outer_products(rows, a, b, c, c_stride));
  } else {
    ref::sum_outer_products(rows, a, b, c, c_stride);
  }
}

void sum_outer_products_and_rows(int64_t rows, const MatrixColumns<Bf16>& a,
                                 const MatrixColumns<Bf16>& b, float* c, int64_t c_stride,
                                 float* a_sums) {
  LRA_CHECK_LE(a.columns, kOuterRows);
  LRA_CHECK_LE(b.columns, kOuterColumns);
  const Isa isa = choose(Op::kOuterProductsBf16);
  LRA_RETURN_IF_TILES(isa, sum_outer_products(rows, a, b, c, c_stride, a_sums));
  LRA_CHECK(has_tiles());
}

template <typename T>
void ref::sum_outer_products(int64_t rows, const MatrixColumns<T>& a, const MatrixColumns<T>& b,
                             Wide<T>* c, int64_t c_stride) {
  using W = Wide<T>;
  for (int64_t i = 0; i < a.columns; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) {
      W sum = 0;
      for (int64_t first = 0; first < rows; first += kOuterRun) {
        W run = 0;
        for (int64_t r = first; r < std::min(rows, first + kOuterRun); ++r) {
          run += static_cast<W>(a.data[r * a.row_stride + i]) *
                 static_cast<W>(b.data[r * b.row_stride + j]);
        }
        sum += run;
      }
      c[i * c_stride + j] = sum;
    }
  }
}

#define LRA_INSTANTIATE(T)                                                                         \
  template void sum_outer_products(int64_t, const MatrixColumns<T>&, const MatrixColumns<T>&,      \
                                   Wide<T>*, int64_t);                                             \
  template void ref::sum_outer_products(int64_t, const MatrixColumns<T>&, const MatrixColumns<T>&, \
                                        Wide<T>*, int64_t);
LRA_INSTANTIATE(float)
LRA_INSTANTIATE(Bf16)
LRA_INSTANTIATE(double)
#undef LRA_INSTANTIATE

}  // namespace lra::kernels
