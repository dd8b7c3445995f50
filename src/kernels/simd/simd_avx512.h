// The vectors of simd.h on AVX-512 (F, BW, DQ and VL): one register each.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/choice.h"

#define LRA_ISA avx512

namespace lra::kernels::avx512 {

inline constexpr Isa kIsa = Isa::kAvx512;

using Floats = __m512;
using Words = __m512i;
using Lanes = __mmask16;

// Register blocks of gemm_blocks.h: `Registers` of sixteen floats, `HalfRegisters` of eight. At
// most 24 of the 32 registers hold sums; eight sums in flight already hide the latency of a
// multiply-add (4 cycles, two a cycle), so narrow blocks need no more than eight rows.
struct Registers {
  using Vector = __m512;
  static constexpr int kFloats = 16;
  static constexpr int kMostVectors = 4;
  static constexpr int rows_per_block(int vectors) { return vectors == 4 ? 6 : 8; }
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
};

// On processors that run 512 bits in two halves (Zen 4) a product of depth 256 and eight columns
// goes from 52 to 72 useful GFLOP/s.
struct HalfRegisters {
  using Vector = __m256;
  static constexpr int kFloats = 8;
  static constexpr int rows_per_block(int) { return 8; }
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Vector x) { _mm256_storeu_ps(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
};

// Cuts of outer_products_blocks.h: kChunk rows are packed at once, kRows columns of A, which never
// cross a vector of A, meet kVectors of B. Here that is one register block, and 48 columns of B and
// 16 of A, all that inner loops read repeatedly, take 32 KiB.
struct OuterBlocks {
  static constexpr int64_t kChunk = 128;
  static constexpr int64_t kRows = 8;
  static constexpr int64_t kVectors = 3;
};

inline Floats zeros() { return _mm512_setzero_ps(); }
inline Floats broadcast(float x) { return _mm512_set1_ps(x); }
inline Words broadcast(int32_t x) { return _mm512_set1_epi32(x); }
inline Words counting() {
  return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
}

inline Floats load(const float* from) { return _mm512_loadu_ps(from); }
inline void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
inline Floats load_lanes(Lanes lanes, const float* from) {
  return _mm512_maskz_loadu_ps(lanes, from);
}
inline Words load_lanes(Lanes lanes, const int32_t* from) {
  return _mm512_maskz_loadu_epi32(lanes, from);
}
inline void store_lanes(float* to, Lanes lanes, Floats x) { _mm512_mask_storeu_ps(to, lanes, x); }

// Sixteen numbers of 16 bits, each in its own word.
struct HalfWords {
  __m256i bits;
};
inline HalfWords load_half_words(const void* from) {
  return {_mm256_loadu_si256(static_cast<const __m256i*>(from))};
}
inline HalfWords load_half_words(Lanes lanes, const void* from) {
  return {_mm256_maskz_loadu_epi16(lanes, from)};
}
inline void store_half_words(void* to, HalfWords x) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), x.bits);
}
inline void store_half_words(void* to, Lanes lanes, HalfWords x) {
  _mm256_mask_storeu_epi16(to, lanes, x.bits);
}
inline Words widen(HalfWords x) { return _mm512_cvtepu16_epi32(x.bits); }
inline HalfWords upper_halves(Words x) {
  const __m512i odd = _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 31, 29, 27,
                                       25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return {_mm512_castsi512_si256(_mm512_permutexvar_epi16(odd, x))};
}
inline Words join(HalfWords low, HalfWords high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low.bits), high.bits, 1);
}

inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats multiply_subtract(Floats a, Floats b, Floats c) { return _mm512_fmsub_ps(a, b, c); }
inline Floats subtract_product(Floats c, Floats a, Floats b) { return _mm512_fnmadd_ps(a, b, c); }
inline Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
inline Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
inline Floats sqrt(Floats x) { return _mm512_sqrt_ps(x); }
inline Floats abs(Floats x) { return _mm512_abs_ps(x); }
inline Floats nearest(Floats x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Floats times_power_of_two(Floats x, Floats n) { return _mm512_scalef_ps(x, n); }

inline Floats keep(Lanes lanes, Floats x) { return _mm512_maskz_mov_ps(lanes, x); }
inline Floats select(Lanes lanes, Floats yes, Floats no) {
  return _mm512_mask_mov_ps(no, lanes, yes);
}
inline Words select(Lanes lanes, Words yes, Words no) {
  return _mm512_mask_mov_epi32(no, lanes, yes);
}
inline Lanes greater(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
inline Lanes equal(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline Lanes is_nan(Floats x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }

inline float sum_of_lanes(Floats x) { return _mm512_reduce_add_ps(x); }
// sum_of_lanes() of four vectors, lanes n and n + 2 of each four first, then n and n + 1, then
// fours 8 lanes apart: a third of the instructions.
inline void store_sums(float* to, Floats a, Floats b, Floats c, Floats d) {
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  const __m512 fours =
      _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xEE));
  const __m256 half =
      _mm256_add_ps(_mm512_castps512_ps256(fours), _mm512_extractf32x8_ps(fours, 1));
  _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}
inline float max_of_lanes(Floats x) { return _mm512_reduce_max_ps(x); }
inline int32_t min_of_lanes(Words x) { return _mm512_reduce_min_epi32(x); }

// Sums of squares in double precision.
struct Squares {
  __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();
  void add(Floats x) {
    const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    const __m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    low = _mm512_fmadd_pd(a, a, low);
    high = _mm512_fmadd_pd(b, b, high);
  }
  double sum() const { return _mm512_reduce_add_pd(_mm512_add_pd(low, high)); }
};

inline Words words_of(Floats x) { return _mm512_castps_si512(x); }
inline Floats floats_of(Words x) { return _mm512_castsi512_ps(x); }
inline Words add(Words a, Words b) { return _mm512_add_epi32(a, b); }
inline Words subtract(Words a, Words b) { return _mm512_sub_epi32(a, b); }
inline Words add_odd(Words x, Words of) {
  const __mmask16 is_odd = _mm512_test_epi32_mask(of, _mm512_set1_epi32(0x10000));
  return _mm512_mask_add_epi32(x, is_odd, x, _mm512_set1_epi32(1));
}
inline Words bit_and(Words a, Words b) { return _mm512_and_epi32(a, b); }
inline Words bit_or(Words a, Words b) { return _mm512_or_epi32(a, b); }
inline Words exclusive_or(Words a, Words b, Words c) {
  return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}
inline Words half_up(Words x) { return _mm512_slli_epi32(x, 16); }
inline Words half_down(Words x) { return _mm512_srli_epi32(x, 16); }
inline Lanes below_unsigned(Words a, Words b) { return _mm512_cmplt_epu32_mask(a, b); }
inline Lanes at_least_unsigned(Words a, Words b) { return _mm512_cmpge_epu32_mask(a, b); }

inline void multiply_wide(Words x, uint32_t multiplier, Words& high, Words& low) {
  const __m512i m = _mm512_set1_epi64(multiplier);
  const __m512i even = _mm512_mul_epu32(x, m);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), m);
  low = _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
  high = _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
}

inline void transpose_16x16(Floats (&r)[16]) {
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
