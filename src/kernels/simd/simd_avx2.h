// The vectors of simd.h on AVX2 and FMA: two registers each.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/choice.h"

#define LRA_ISA avx2

namespace lra::kernels::avx2 {

inline constexpr Isa kIsa = Isa::kAvx2;

struct Floats {
  __m256 low, high;
};
struct Words {
  __m256i low, high;
};
using Lanes = uint16_t;

// Register blocks of gemm_blocks.h: six rows of sixteen columns keep twelve of the sixteen
// registers as sums, more than hide the latency of a multiply-add (4 cycles, two a cycle).
struct Registers {
  using Vector = __m256;
  static constexpr int kFloats = 8;
  static constexpr int kMostVectors = 1;
  static constexpr int rows_per_block(int) { return 6; }
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Vector x) { _mm256_storeu_ps(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
};
struct HalfRegisters : Registers {
  static constexpr int rows_per_block(int) { return 8; }
};

// Cuts of outer_products_blocks.h: kChunk rows are packed at once, kRows columns of A, which never
// cross a vector of A, meet kVectors of B. One vector of B over a long chunk: 80 GFLOP/s on Zen 3,
// against 63 with the cut of AVX-512.
struct OuterBlocks {
  static constexpr int64_t kChunk = 512;
  static constexpr int64_t kRows = 16;
  static constexpr int64_t kVectors = 1;
};

inline Floats zeros() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Floats broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Words broadcast(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline Words counting() {
  return {_mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0), _mm256_set_epi32(15, 14, 13, 12, 11, 10, 9, 8)};
}

// A word of ones for each lane that is set.
inline Words spread(Lanes lanes) {
  const __m256i all = _mm256_set1_epi32(lanes);
  const __m256i low = _mm256_set_epi32(1 << 7, 1 << 6, 1 << 5, 1 << 4, 1 << 3, 1 << 2, 1 << 1, 1);
  const __m256i high = _mm256_slli_epi32(low, 8);
  return {_mm256_cmpeq_epi32(_mm256_and_si256(all, low), low),
          _mm256_cmpeq_epi32(_mm256_and_si256(all, high), high)};
}
inline Lanes gather_lanes(__m256 low, __m256 high) {
  return static_cast<Lanes>(_mm256_movemask_ps(low) | _mm256_movemask_ps(high) << 8);
}
inline Lanes gather_lanes(__m256i low, __m256i high) {
  return gather_lanes(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
}

inline Floats load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
inline void store(float* to, Floats x) {
  _mm256_storeu_ps(to, x.low);
  _mm256_storeu_ps(to + 8, x.high);
}
inline Floats load_lanes(Lanes lanes, const float* from) {
  if (lanes == 0xFFFF) return load(from);
  const Words mask = spread(lanes);
  return {_mm256_maskload_ps(from, mask.low), _mm256_maskload_ps(from + 8, mask.high)};
}
inline Words load_lanes(Lanes lanes, const int32_t* from) {
  const Words mask = spread(lanes);
  return {_mm256_maskload_epi32(from, mask.low), _mm256_maskload_epi32(from + 8, mask.high)};
}
// AMD's processors before Zen 4 take some 40 micro-operations for a store under a mask: blocks of
// 50 rows of attention spent a fifth of their time in them. The widths of heads go without.
inline void store_lanes(float* to, Lanes lanes, Floats x) {
  if (lanes == 0xFFFF) return store(to, x);
  if (lanes == 0xFF) return _mm256_storeu_ps(to, x.low);
  if (lanes == 0xF) return _mm_storeu_ps(to, _mm256_castps256_ps128(x.low));
  const Words mask = spread(lanes);
  _mm256_maskstore_ps(to, mask.low, x.low);
  _mm256_maskstore_ps(to + 8, mask.high, x.high);
}

// Sixteen numbers of 16 bits, each in its own word.
struct HalfWords {
  __m256i bits;
};
inline HalfWords load_half_words(const void* from) {
  return {_mm256_loadu_si256(static_cast<const __m256i*>(from))};
}
// AVX2 has no masks for 16 bits; whole vectors and heads of eight do without.
inline HalfWords load_half_words(Lanes lanes, const void* from) {
  if (lanes == 0xFFFF) return load_half_words(from);
  if (lanes == 0) return {_mm256_setzero_si256()};
  if (lanes == 0xFF) {
    const __m128i eight = _mm_loadu_si128(static_cast<const __m128i*>(from));
    return {_mm256_zextsi128_si256(eight)};
  }
  alignas(32) uint16_t space[16] = {};
  for (int n = 0; n < 16; ++n) {
    if (lanes >> n & 1) std::memcpy(space + n, static_cast<const char*>(from) + 2 * n, 2);
  }
  return load_half_words(space);
}
inline void store_half_words(void* to, HalfWords x) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), x.bits);
}
inline void store_half_words(void* to, Lanes lanes, HalfWords x) {
  if (lanes == 0xFFFF) return store_half_words(to, x);
  if (lanes == 0xFF) {
    return _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_castsi256_si128(x.bits));
  }
  alignas(32) uint16_t space[16];
  store_half_words(space, x);
  for (int n = 0; n < 16; ++n) {
    if (lanes >> n & 1) std::memcpy(static_cast<char*>(to) + 2 * n, space + n, 2);
  }
}
inline Words widen(HalfWords x) {
  return {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(x.bits)),
          _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x.bits, 1))};
}
inline Words join(HalfWords low, HalfWords high) { return {low.bits, high.bits}; }
inline HalfWords upper_halves(Words x) {
  const __m256i low = _mm256_srli_epi32(x.low, 16), high = _mm256_srli_epi32(x.high, 16);
  return {_mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8)};
}

inline Floats operator+(Floats a, Floats b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline Floats operator-(Floats a, Floats b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline Floats operator*(Floats a, Floats b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline Floats operator/(Floats a, Floats b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Floats multiply_subtract(Floats a, Floats b, Floats c) {
  return {_mm256_fmsub_ps(a.low, b.low, c.low), _mm256_fmsub_ps(a.high, b.high, c.high)};
}
inline Floats subtract_product(Floats c, Floats a, Floats b) {
  return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)};
}
inline Floats max(Floats a, Floats b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline Floats min(Floats a, Floats b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
inline Floats sqrt(Floats x) { return {_mm256_sqrt_ps(x.low), _mm256_sqrt_ps(x.high)}; }
inline Floats abs(Floats x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high)};
}
inline Floats nearest(Floats x) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.low, kMode), _mm256_round_ps(x.high, kMode)};
}
// The exponent is written into a float's bits; 0 for exponents below -126, and for NaN.
inline __m256 power_of_two(__m256 n) {
  const __m256i whole = _mm256_max_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(-127));
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_add_epi32(whole, _mm256_set1_epi32(127)), 23));
}
inline Floats times_power_of_two(Floats x, Floats n) {
  return x * Floats{power_of_two(n.low), power_of_two(n.high)};
}

inline Words words_of(Floats x) {
  return {_mm256_castps_si256(x.low), _mm256_castps_si256(x.high)};
}
inline Floats floats_of(Words x) {
  return {_mm256_castsi256_ps(x.low), _mm256_castsi256_ps(x.high)};
}

inline Floats keep(Lanes lanes, Floats x) {
  const Floats mask = floats_of(spread(lanes));
  return {_mm256_and_ps(mask.low, x.low), _mm256_and_ps(mask.high, x.high)};
}
inline Floats select(Lanes lanes, Floats yes, Floats no) {
  const Floats mask = floats_of(spread(lanes));
  return {_mm256_blendv_ps(no.low, yes.low, mask.low),
          _mm256_blendv_ps(no.high, yes.high, mask.high)};
}
inline Words select(Lanes lanes, Words yes, Words no) {
  return words_of(select(lanes, floats_of(yes), floats_of(no)));
}
inline Lanes greater(Floats a, Floats b) {
  return gather_lanes(_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ),
                      _mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ));
}
inline Lanes equal(Floats a, Floats b) {
  return gather_lanes(_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ),
                      _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ));
}
inline Lanes is_nan(Floats x) {
  return gather_lanes(_mm256_cmp_ps(x.low, x.low, _CMP_UNORD_Q),
                      _mm256_cmp_ps(x.high, x.high, _CMP_UNORD_Q));
}

// Halves are joined until one lane is left, as AVX-512's own reductions do.
template <typename Join>
inline float join_lanes(Floats x, const Join& join) {
  const __m256 eight = join(x.low, x.high);
  const __m256 swapped = _mm256_permute2f128_ps(eight, eight, 1);
  const __m256 four = join(eight, swapped);
  const __m256 two = join(four, _mm256_permute_ps(four, 0x4E));
  return _mm256_cvtss_f32(join(two, _mm256_permute_ps(two, 0xB1)));
}
inline float sum_of_lanes(Floats x) {
  return join_lanes(x, [](__m256 a, __m256 b) { return _mm256_add_ps(a, b); });
}
// sum_of_lanes() of four vectors, in the order of AVX-512's.
inline __m256 sums_of_fours(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
  const __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
  return _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xEE));
}
inline void store_sums(float* to, Floats a, Floats b, Floats c, Floats d) {
  const __m256 half = _mm256_add_ps(sums_of_fours(a.low, b.low, c.low, d.low),
                                    sums_of_fours(a.high, b.high, c.high, d.high));
  _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}
inline float max_of_lanes(Floats x) {
  return join_lanes(x, [](__m256 a, __m256 b) { return _mm256_max_ps(a, b); });
}
inline int32_t min_of_lanes(Words x) {
  const auto join = [](__m256 a, __m256 b) {
    return _mm256_castsi256_ps(_mm256_min_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
  };
  const float least = join_lanes(floats_of(x), join);
  int32_t result;
  std::memcpy(&result, &least, sizeof(result));
  return result;
}

// Sums of squares in double precision.
struct Squares {
  __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                     _mm256_setzero_pd()};
  void add(Floats x) {
    const __m128 parts[4] = {_mm256_castps256_ps128(x.low), _mm256_extractf128_ps(x.low, 1),
                             _mm256_castps256_ps128(x.high), _mm256_extractf128_ps(x.high, 1)};
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) {
      const __m256d part = _mm256_cvtps_pd(parts[n]);
      sums[n] = _mm256_fmadd_pd(part, part, sums[n]);
    }
  }
  double sum() const {
    const __m256d low = _mm256_add_pd(sums[0], sums[2]), high = _mm256_add_pd(sums[1], sums[3]);
    const __m256d four = _mm256_add_pd(low, high);
    const __m256d two = _mm256_add_pd(four, _mm256_permute2f128_pd(four, four, 1));
    return _mm256_cvtsd_f64(two) + _mm256_cvtsd_f64(_mm256_permute_pd(two, 1));
  }
};

inline Words add(Words a, Words b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
inline Words subtract(Words a, Words b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}
inline Words bit_and(Words a, Words b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
inline Words exclusive_or(Words a, Words b, Words c) {
  return {_mm256_xor_si256(_mm256_xor_si256(a.low, b.low), c.low),
          _mm256_xor_si256(_mm256_xor_si256(a.high, b.high), c.high)};
}
inline Words half_up(Words x) {
  return {_mm256_slli_epi32(x.low, 16), _mm256_slli_epi32(x.high, 16)};
}
inline Words half_down(Words x) {
  return {_mm256_srli_epi32(x.low, 16), _mm256_srli_epi32(x.high, 16)};
}
inline Words add_odd(Words x, Words of) { return add(x, bit_and(half_down(of), broadcast(1))); }
inline Lanes at_least_unsigned(Words a, Words b) {
  return gather_lanes(_mm256_cmpeq_epi32(_mm256_max_epu32(a.low, b.low), a.low),
                      _mm256_cmpeq_epi32(_mm256_max_epu32(a.high, b.high), a.high));
}
inline Lanes below_unsigned(Words a, Words b) {
  return static_cast<Lanes>(~at_least_unsigned(a, b));
}

inline void multiply_wide(__m256i x, uint32_t multiplier, __m256i& high, __m256i& low) {
  const __m256i m = _mm256_set1_epi64x(multiplier);
  const __m256i even = _mm256_mul_epu32(x, m);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}
inline void multiply_wide(Words x, uint32_t multiplier, Words& high, Words& low) {
  multiply_wide(x.low, multiplier, high.low, low.low);
  multiply_wide(x.high, multiplier, high.high, low.high);
}

inline void transpose_8x8(__m256 (&r)[8]) {
  __m256 t[8];
#pragma GCC unroll 2
  for (int g = 0; g < 8; g += 4) {  // 4 x 4 blocks inside 128-bit lanes
    const __m256 a = _mm256_unpacklo_ps(r[g], r[g + 1]), b = _mm256_unpackhi_ps(r[g], r[g + 1]);
    const __m256 c = _mm256_unpacklo_ps(r[g + 2], r[g + 3]);
    const __m256 d = _mm256_unpackhi_ps(r[g + 2], r[g + 3]);
    t[g] = _mm256_shuffle_ps(a, c, 0x44);
    t[g + 1] = _mm256_shuffle_ps(a, c, 0xEE);
    t[g + 2] = _mm256_shuffle_ps(b, d, 0x44);
    t[g + 3] = _mm256_shuffle_ps(b, d, 0xEE);
  }
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {  // then the 128-bit lanes
    r[n] = _mm256_permute2f128_ps(t[n], t[4 + n], 0x20);
    r[4 + n] = _mm256_permute2f128_ps(t[n], t[4 + n], 0x31);
  }
}
inline void transpose_16x16(Floats (&r)[16]) {
  __m256 quarters[2][2][8];  // [first or last rows][first or last columns]
#pragma GCC unroll 16
  for (int n = 0; n < 16; ++n) {
    quarters[n / 8][0][n % 8] = r[n].low;
    quarters[n / 8][1][n % 8] = r[n].high;
  }
  for (auto& rows : quarters) {
    for (auto& quarter : rows) transpose_8x8(quarter);
  }
#pragma GCC unroll 16
  for (int n = 0; n < 16; ++n) r[n] = {quarters[0][n / 8][n % 8], quarters[1][n / 8][n % 8]};
}

}  // namespace lra::kernels::avx2
