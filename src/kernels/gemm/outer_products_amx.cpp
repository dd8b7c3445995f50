#include "kernels/gemm/outer_products_tiles.h"
#include "kernels/simd/tiles_amx.h"

namespace lra::kernels::amx {

void sum_outer_products(int64_t rows, const MatrixColumns<Bf16>& a, const MatrixColumns<Bf16>& b,
                        float* c, int64_t c_stride, float* a_sums) {
  sum_outer_products_on_tiles<HardwareTiles>(rows, a, b, c, c_stride, a_sums);
}

}  // namespace lra::kernels::amx
