#include "kernels/gemm/gemm_blocks.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

void gemm(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  multiply_blocks<Registers, HalfRegisters>(size, operands, accumulate);
}

}  // namespace lra::kernels::LRA_ISA
