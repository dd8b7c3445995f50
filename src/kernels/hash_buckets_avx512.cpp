#include "kernels/hash_buckets.h"

#include "kernels/simd.h"

namespace lra::kernels::avx512 {

int64_t index_of_largest(const float* values, int64_t count) {
  __m512 most = _mm512_set1_ps(-1);
  __m512i where = _mm512_setzero_si512();
  __m512i index = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int64_t n = 0; n < count; n += kLanes) {
    const __mmask16 lanes = lanes_between(0, count - n);
    const __m512 size = _mm512_abs_ps(_mm512_maskz_loadu_ps(lanes, values + n));
    const __mmask16 larger = _mm512_mask_cmp_ps_mask(lanes, size, most, _CMP_GT_OQ);
    most = _mm512_mask_mov_ps(most, larger, size);
    where = _mm512_mask_mov_epi32(where, larger, index);
    index = _mm512_add_epi32(index, _mm512_set1_epi32(kLanes));
  }
  const __m512 largest = _mm512_set1_ps(_mm512_reduce_max_ps(most));
  const __mmask16 equal = _mm512_cmp_ps_mask(most, largest, _CMP_EQ_OQ);
  return _mm512_mask_reduce_min_epi32(equal, where);
}

}  // namespace lra::kernels::avx512
