#include "kernels/gemm/pairs.h"

#include <bit>

#include "kernels/gemm/gemm_blocks.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::avx512_bf16 {
namespace {

struct FullPairs : avx512::Registers {
  static Vector multiply_add(Vector a, Vector b, Vector c) {
    return _mm512_dpbf16_ps(c, std::bit_cast<__m512bh>(a), std::bit_cast<__m512bh>(b));
  }
};

struct HalfPairs : avx512::HalfRegisters {
  static Vector multiply_add(Vector a, Vector b, Vector c) {
    return _mm256_dpbf16_ps(c, std::bit_cast<__m256bh>(a), std::bit_cast<__m256bh>(b));
  }
};

}  // namespace

void gemm_pairs(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  multiply_blocks<FullPairs, HalfPairs>(size, operands, accumulate);
}

}  // namespace lra::kernels::avx512_bf16
