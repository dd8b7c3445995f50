#include "kernels/gemm/gemm.h"

namespace lra::kernels::ref {

void gemm(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  const GemmOperands& o = operands;
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < size.columns; ++j) {
      float& c = o.c[i * o.c_row + j];
      float sum = accumulate ? c : 0;
      const float* b = o.b + j / kGemmVector * o.b_vector + j % kGemmVector;
      for (int64_t d = 0; d < size.depth; ++d) {
        sum += o.a[i * o.a_row + d * o.a_depth] * b[d * o.b_depth];
      }
      c = sum;
    }
  }
}

}  // namespace lra::kernels::ref
