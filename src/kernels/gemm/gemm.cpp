#include "kernels/gemm/gemm.h"

#include "kernels/choice.h"

namespace lra::kernels {

void gemm(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  LRA_RETURN_CALL(choose(Op::kGemm), gemm(size, operands, accumulate));
}

}  // namespace lra::kernels
