// Rounding to bfloat16 by the instructions of AVX512_BF16; numbers below 2^-126 become 0.
#pragma once

#include <bit>

#include "kernels/simd/simd.h"

namespace lra::kernels::avx512_bf16 {

inline avx512::HalfWords narrow(avx512::Floats x) {
  return {std::bit_cast<__m256i>(_mm512_cvtneps_pbh(x))};
}

// Two vectors rounded to bfloat16; word n of `pairs` has number n of the first in its lower half.
struct NarrowTwo {
  avx512::HalfWords first, second;
  avx512::Words pairs;
};

inline NarrowTwo narrow_two(avx512::Floats first, avx512::Floats second) {
  const __m512i interleaved =
      _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                       21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const auto both = std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  return {{_mm512_castsi512_si256(both)},
          {_mm512_extracti64x4_epi64(both, 1)},
          _mm512_permutexvar_epi16(interleaved, both)};
}

}  // namespace lra::kernels::avx512_bf16
