#include "kernels/gemm.h"

#include "kernels/choice.h"

namespace lra::kernels {

void gemm(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  if (choose(Op::kGemm) == Isa::kAvx512) return avx512::gemm(size, operands, accumulate);
  ref::gemm(size, operands, accumulate);
}

}  // namespace lra::kernels
