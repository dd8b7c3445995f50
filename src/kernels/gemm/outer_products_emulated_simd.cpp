#include "kernels/gemm/outer_products_tiles.h"

namespace lra::kernels::LRA_ISA::emulated {

void sum_outer_products(int64_t rows, const MatrixColumns<Bf16>& a, const MatrixColumns<Bf16>& b,
                        float* c, int64_t c_stride, float* a_sums) {
  sum_outer_products_on_tiles<EmulatedTiles>(rows, a, b, c, c_stride, a_sums);
}

}  // namespace lra::kernels::LRA_ISA::emulated
