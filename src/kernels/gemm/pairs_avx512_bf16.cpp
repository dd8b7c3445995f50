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

__m256i narrowed(const float* from) {
  return std::bit_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(from)));
}

}  // namespace

void gemm_pairs(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  multiply_blocks<FullPairs, HalfPairs>(size, operands, accumulate);
}

void narrow_row(const float* row, int64_t count, float* words) {
  for (int64_t n = 0; n < count; n += avx512::kLanes) {
    const __m256i x = narrowed(row + n);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + n / 2), x);
  }
}

void pair_rows(const float* first, const float* second, int64_t count, float* words) {
  for (int64_t n = 0; n < count; n += avx512::kLanes) {
    __m512i pairs = _mm512_cvtepu16_epi32(narrowed(first + n));
    if (second != nullptr) {
      const __m512i upper = _mm512_cvtepu16_epi32(narrowed(second + n));
      pairs = _mm512_or_epi32(pairs, _mm512_slli_epi32(upper, 16));
    }
    _mm512_storeu_ps(words + n, _mm512_castsi512_ps(pairs));
  }
}

}  // namespace lra::kernels::avx512_bf16
