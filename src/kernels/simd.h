// AVX-512 building blocks, for *_avx512.cpp files alone.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "base/rng.h"
#include "kernels/bf16.h"

namespace lra::kernels::avx512 {

inline constexpr int64_t kLanes = 16;

// Lanes [begin, end) of 16; bounds outside [0, 16] are cut.
inline __mmask16 lanes_between(int64_t begin, int64_t end) {
  const auto below = [](int64_t n) { return (1u << std::clamp<int64_t>(n, 0, kLanes)) - 1; };
  return static_cast<__mmask16>(below(end) & ~below(begin));
}

// The lanes of an array as float, zeros elsewhere.
inline __m512 load_lanes(__mmask16 lanes, const float* from) {
  return _mm512_maskz_loadu_ps(lanes, from);
}
inline __m512 load_lanes(__mmask16 lanes, const Bf16* from) {
  const __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}

// Bf16(x) of each lane, without the instructions that not every processor with AVX-512 has.
inline __m256i to_bf16(__m512 x) {
  const __m512i word = _mm512_castps_si512(x);
  const __m512i is_odd = _mm512_and_epi32(_mm512_srli_epi32(word, 16), _mm512_set1_epi32(1));
  __m512i sum = _mm512_add_epi32(word, _mm512_add_epi32(is_odd, _mm512_set1_epi32(0x7FFF)));
  sum = _mm512_mask_mov_epi32(sum, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                              _mm512_set1_epi32(0x7FC00000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(sum, 16));
}
inline void store_lanes(float* to, __mmask16 lanes, __m512 x) {
  _mm512_mask_storeu_ps(to, lanes, x);
}
inline void store_lanes(Bf16* to, __mmask16 lanes, __m512 x) {
  _mm256_mask_storeu_epi16(to, lanes, to_bf16(x));
}

// All sixteen lanes. What is stored under a mask cannot be read again for some 20 cycles, so inner
// loops over an array that is read and written go without masks.
struct AllLanes {};
inline __m512 load_lanes(AllLanes, const float* from) { return _mm512_loadu_ps(from); }
inline __m512 load_lanes(AllLanes, const Bf16* from) {
  const auto* words = reinterpret_cast<const __m256i*>(from);
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(words)), 16));
}
inline void store_lanes(float* to, AllLanes, __m512 x) { _mm512_storeu_ps(to, x); }
inline void store_lanes(Bf16* to, AllLanes, __m512 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), to_bf16(x));
}

// Calls body(n, lanes) for each run of sixteen from n on, with a mask for a last one that is
// shorter.
template <typename F>
inline void for_each_run(int64_t count, const F& body) {
  int64_t n = 0;
  for (; n + kLanes <= count; n += kLanes) body(n, AllLanes{});
  if (n < count) body(n, lanes_between(0, count - n));
}

// 2^x for x <= 127, relative error 1.2e-7; 0 below -150, -infinity included; NaN stays NaN.
// x = n + f with n whole and |f| <= 1/2; the polynomial is the minimax one for 2^f of degree 6
// (relative error 2e-9; degree 5 has 7.5e-8, which rounding then makes 2e-7).
inline __m512 exp2_ps(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-200.0f), x);  // second operand: what comes out for NaN
  const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(x, n);
  __m512 y = _mm512_set1_ps(1.534581197577063e-4f);
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(1.3399931385065756e-3f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(9.618488958659853e-3f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(5.5503287765567316e-2f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(2.402264689060621e-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(6.931472057374544e-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(y, n);
}

// elu(x) + 1: x + 1 for x > 0 and exp(x) otherwise (Clevert et al., arXiv:1511.07289); relative
// error 2e-7 * max(1, |x|).
inline __m512 elu_plus_one_ps(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f), log2e = _mm512_set1_ps(1.44269504088896f);
  const __mmask16 above = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
  const __m512 power = exp2_ps(_mm512_mul_ps(_mm512_maskz_mov_ps(~above, x), log2e));
  return _mm512_mask_add_ps(power, above, x, one);
}

// Sixteen Philox blocks at once: word w of block n is lane n of words[w].
struct PhiloxLanes {
  __m512i words[4];
};

inline void multiply_wide(__m512i x, uint32_t multiplier, __m512i& high, __m512i& low) {
  const __m512i m = _mm512_set1_epi64(multiplier);
  const __m512i even = _mm512_mul_epu32(x, m);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), m);
  low = _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
  high = _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
}

inline PhiloxLanes philox_lanes(PhiloxLanes counter, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  constexpr int kXor3 = 0x96;
  auto& c = counter.words;
#pragma GCC unroll 10
  for (int round = 0; round < philox::kRounds; ++round) {
    __m512i high0, low0, high1, low1;
    multiply_wide(c[0], philox::kMultiplier0, high0, low0);
    multiply_wide(c[2], philox::kMultiplier1, high1, low1);
    c[0] = _mm512_ternarylogic_epi32(high1, c[1], _mm512_set1_epi32(static_cast<int>(k0)), kXor3);
    c[2] = _mm512_ternarylogic_epi32(high0, c[3], _mm512_set1_epi32(static_cast<int>(k1)), kXor3);
    c[1] = low1;
    c[3] = low0;
    k0 += philox::kWeyl0;
    k1 += philox::kWeyl1;
  }
  return counter;
}

inline constexpr int64_t kDropoutGroup = 128;  // columns that sixteen blocks decide
inline constexpr int64_t kDropoutGroupVectors = kDropoutGroup / kLanes;

// Which of the columns 128 group .. 128 group + 127 of a row are kept: bit n of kept[v] is column
// 128 group + 16 v + n. The same decisions as dropout_value() in base/rng.h.
inline void dropout_keeps(uint64_t key, uint32_t threshold, uint32_t plane, uint32_t row,
                          int64_t group, uint16_t* kept) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const auto first = static_cast<int>(group * kLanes);
  const PhiloxLanes random = philox_lanes(
      {{_mm512_add_epi32(lane, _mm512_set1_epi32(first)), _mm512_set1_epi32(static_cast<int>(row)),
        _mm512_set1_epi32(static_cast<int>(plane)), _mm512_setzero_si512()}},
      key);
  // A 16-bit value is below the threshold exactly when, moved to the upper half of a word over any
  // lower half, it is below the threshold moved likewise.
  const __m512i bound = _mm512_set1_epi32(static_cast<int>(threshold << 16));
#pragma GCC unroll 4
  for (int w = 0; w < 4; ++w) {
    kept[2 * w] = _mm512_cmpge_epu32_mask(_mm512_slli_epi32(random.words[w], 16), bound);
    kept[2 * w + 1] = _mm512_cmpge_epu32_mask(random.words[w], bound);
  }
}

// Transposes sixteen rows of sixteen floats in place.
inline void transpose_16x16(__m512 (&r)[16]) {
  __m512 t[16];
#pragma GCC unroll 4
  for (int g = 0; g < 16; g += 4) {  // 4 x 4 blocks inside 128-bit lanes
    const __m512 a = _mm512_unpacklo_ps(r[g], r[g + 1]), b = _mm512_unpackhi_ps(r[g], r[g + 1]);
    const __m512 c = _mm512_unpacklo_ps(r[g + 2], r[g + 3]);
    const __m512 d = _mm512_unpackhi_ps(r[g + 2], r[g + 3]);
    t[g] = _mm512_shuffle_ps(a, c, 0x44);
    t[g + 1] = _mm512_shuffle_ps(a, c, 0xEE);
    t[g + 2] = _mm512_shuffle_ps(b, d, 0x44);
    t[g + 3] = _mm512_shuffle_ps(b, d, 0xEE);
  }
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {  // then the 128-bit lanes
    const __m512 a = _mm512_shuffle_f32x4(t[n], t[4 + n], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(t[n], t[4 + n], 0xDD);
    const __m512 c = _mm512_shuffle_f32x4(t[8 + n], t[12 + n], 0x88);
    const __m512 d = _mm512_shuffle_f32x4(t[8 + n], t[12 + n], 0xDD);
    r[n] = _mm512_shuffle_f32x4(a, c, 0x88);
    r[4 + n] = _mm512_shuffle_f32x4(b, d, 0x88);
    r[8 + n] = _mm512_shuffle_f32x4(a, c, 0xDD);
    r[12 + n] = _mm512_shuffle_f32x4(b, d, 0xDD);
  }
}

}  // namespace lra::kernels::avx512
