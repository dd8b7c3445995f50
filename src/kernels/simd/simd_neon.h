// The vectors of simd.h on NEON (aarch64): four registers each.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/choice.h"

#define LRA_ISA neon

namespace lra::kernels::neon {

inline constexpr Isa kIsa = Isa::kNeon;

struct Floats {
  float32x4_t of[4];
};
struct Words {
  uint32x4_t of[4];
};
using Lanes = uint16_t;

// The vector whose register n is one(n).
template <typename F>
inline Floats floats(const F& one) {
  return {{one(0), one(1), one(2), one(3)}};
}
template <typename F>
inline Words words(const F& one) {
  return {{one(0), one(1), one(2), one(3)}};
}

// Register blocks of gemm_blocks.h: six rows of sixteen columns keep 24 of the 32 registers as
// sums, more than hide the latency of a multiply-add (4 cycles, four a cycle on Neoverse V1).
struct Registers {
  using Vector = float32x4_t;
  static constexpr int kFloats = 4;
  static constexpr int kMostVectors = 1;
  static constexpr int rows_per_block(int) { return 6; }
  static Vector zero() { return vdupq_n_f32(0); }
  static Vector broadcast(float x) { return vdupq_n_f32(x); }
  static Vector load(const float* from) { return vld1q_f32(from); }
  static void store(float* to, Vector x) { vst1q_f32(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return vfmaq_f32(c, a, b); }
};
struct HalfRegisters {
  struct Vector {
    float32x4_t low, high;
  };
  static constexpr int kFloats = 8;
  static constexpr int rows_per_block(int) { return 8; }
  static Vector zero() { return broadcast(0); }
  static Vector broadcast(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static Vector load(const float* from) { return {vld1q_f32(from), vld1q_f32(from + 4)}; }
  static void store(float* to, Vector x) {
    vst1q_f32(to, x.low);
    vst1q_f32(to + 4, x.high);
  }
  static Vector multiply_add(Vector a, Vector b, Vector c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
};

// Cuts of outer_products_blocks.h: kChunk rows are packed at once, kRows columns of A, which never
// cross a vector of A, meet kVectors of B. As with AVX2, whose register blocks have the same shape.
struct OuterBlocks {
  static constexpr int64_t kChunk = 512;
  static constexpr int64_t kRows = 16;
  static constexpr int64_t kVectors = 1;
};

inline Floats broadcast(float x) {
  return floats([&](int) { return vdupq_n_f32(x); });
}
inline Floats zeros() { return broadcast(0.0f); }
inline Words broadcast(int32_t x) {
  return words([&](int) { return vdupq_n_u32(static_cast<uint32_t>(x)); });
}
inline Words counting() {
  const uint32x4_t first = {0, 1, 2, 3};
  return words([&](int n) { return vaddq_u32(first, vdupq_n_u32(4u * static_cast<uint32_t>(n))); });
}

// The bit of each lane in a word of Lanes.
inline Words bits_of_lanes() {
  const uint32x4_t first = {1, 2, 4, 8};
  return words([&](int n) { return vshlq_u32(first, vdupq_n_s32(4 * n)); });
}
// A word of ones for each lane that is set.
inline Words spread(Lanes lanes) {
  const uint32x4_t all = vdupq_n_u32(lanes);
  const Words bits = bits_of_lanes();
  return words([&](int n) { return vtstq_u32(all, bits.of[n]); });
}
// The reverse.
inline Lanes gather_lanes(Words ones) {
  const Words bits = bits_of_lanes();
  const auto bits_of = [&](int n) { return vandq_u32(ones.of[n], bits.of[n]); };
  const uint32x4_t all =
      vorrq_u32(vorrq_u32(bits_of(0), bits_of(1)), vorrq_u32(bits_of(2), bits_of(3)));
  return static_cast<Lanes>(vaddvq_u32(all));
}

inline Floats load(const float* from) {
  return floats([&](int n) { return vld1q_f32(from + 4 * n); });
}
inline void store(float* to, Floats x) {
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) vst1q_f32(to + 4 * n, x.of[n]);
}

// NEON has no masks for memory: whole registers are moved at once, others number by number.
inline constexpr unsigned kWholeRegister = 0xF;
template <typename T>
inline void move_lanes(unsigned lanes, const T* from, T* to) {
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {
    if (lanes >> n & 1) to[n] = from[n];
  }
}
inline Floats load_lanes(Lanes lanes, const float* from) {
  return floats([&](int n) {
    const unsigned quarter = lanes >> 4 * n & kWholeRegister;
    if (quarter == kWholeRegister) return vld1q_f32(from + 4 * n);
    float space[4] = {};
    move_lanes(quarter, from + 4 * n, space);
    return vld1q_f32(space);
  });
}
inline Words load_lanes(Lanes lanes, const int32_t* from) {
  return words([&](int n) {
    int32_t space[4] = {};
    move_lanes(lanes >> 4 * n & kWholeRegister, from + 4 * n, space);
    return vreinterpretq_u32_s32(vld1q_s32(space));
  });
}
inline void store_lanes(float* to, Lanes lanes, Floats x) {
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {
    const unsigned quarter = lanes >> 4 * n & kWholeRegister;
    if (quarter == kWholeRegister) {
      vst1q_f32(to + 4 * n, x.of[n]);
    } else if (quarter != 0) {
      float space[4];
      vst1q_f32(space, x.of[n]);
      move_lanes(quarter, space, to + 4 * n);
    }
  }
}

// Sixteen numbers of 16 bits, each in its own word.
struct HalfWords {
  uint16x8_t low, high;
};
inline HalfWords load_half_words(const void* from) {
  HalfWords x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}
inline void store_half_words(void* to, HalfWords x) { std::memcpy(to, &x, sizeof(x)); }
inline HalfWords load_half_words(Lanes lanes, const void* from) {
  if (lanes == 0xFFFF) return load_half_words(from);
  uint16_t space[16] = {};
  for (int n = 0; n < 16; ++n) {
    if (lanes >> n & 1) std::memcpy(space + n, static_cast<const char*>(from) + 2 * n, 2);
  }
  return load_half_words(space);
}
inline void store_half_words(void* to, Lanes lanes, HalfWords x) {
  if (lanes == 0xFFFF) return store_half_words(to, x);
  uint16_t space[16];
  store_half_words(space, x);
  for (int n = 0; n < 16; ++n) {
    if (lanes >> n & 1) std::memcpy(static_cast<char*>(to) + 2 * n, space + n, 2);
  }
}
inline Words widen(HalfWords x) {
  return {{vmovl_u16(vget_low_u16(x.low)), vmovl_high_u16(x.low), vmovl_u16(vget_low_u16(x.high)),
           vmovl_high_u16(x.high)}};
}
inline HalfWords upper_halves(Words x) {
  return {vcombine_u16(vshrn_n_u32(x.of[0], 16), vshrn_n_u32(x.of[1], 16)),
          vcombine_u16(vshrn_n_u32(x.of[2], 16), vshrn_n_u32(x.of[3], 16))};
}
inline Words join(HalfWords low, HalfWords high) {
  return {{vreinterpretq_u32_u16(low.low), vreinterpretq_u32_u16(low.high),
           vreinterpretq_u32_u16(high.low), vreinterpretq_u32_u16(high.high)}};
}

inline Floats operator+(Floats a, Floats b) {
  return floats([&](int n) { return vaddq_f32(a.of[n], b.of[n]); });
}
inline Floats operator-(Floats a, Floats b) {
  return floats([&](int n) { return vsubq_f32(a.of[n], b.of[n]); });
}
inline Floats operator*(Floats a, Floats b) {
  return floats([&](int n) { return vmulq_f32(a.of[n], b.of[n]); });
}
inline Floats operator/(Floats a, Floats b) {
  return floats([&](int n) { return vdivq_f32(a.of[n], b.of[n]); });
}
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return floats([&](int n) { return vfmaq_f32(c.of[n], a.of[n], b.of[n]); });
}
inline Floats multiply_subtract(Floats a, Floats b, Floats c) {
  return floats([&](int n) { return vfmaq_f32(vnegq_f32(c.of[n]), a.of[n], b.of[n]); });
}
inline Floats subtract_product(Floats c, Floats a, Floats b) {
  return floats([&](int n) { return vfmsq_f32(c.of[n], a.of[n], b.of[n]); });
}
// vmaxq_f32 and vminq_f32 give NaN where either is NaN.
inline float32x4_t larger(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline float32x4_t smaller(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcltq_f32(a, b), a, b);
}
inline Floats max(Floats a, Floats b) {
  return floats([&](int n) { return larger(a.of[n], b.of[n]); });
}
inline Floats min(Floats a, Floats b) {
  return floats([&](int n) { return smaller(a.of[n], b.of[n]); });
}
inline Floats sqrt(Floats x) {
  return floats([&](int n) { return vsqrtq_f32(x.of[n]); });
}
inline Floats abs(Floats x) {
  return floats([&](int n) { return vabsq_f32(x.of[n]); });
}
inline Floats nearest(Floats x) {
  return floats([&](int n) { return vrndnq_f32(x.of[n]); });
}
// The exponent is written into a float's bits; 0 for exponents below -126, 1 for NaN.
inline float32x4_t power_of_two(float32x4_t n) {
  const int32x4_t whole = vmaxq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(-127));
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(whole, vdupq_n_s32(127)), 23));
}
inline Floats times_power_of_two(Floats x, Floats n) {
  return floats([&](int q) { return vmulq_f32(x.of[q], power_of_two(n.of[q])); });
}

inline Words words_of(Floats x) {
  return words([&](int n) { return vreinterpretq_u32_f32(x.of[n]); });
}
inline Floats floats_of(Words x) {
  return floats([&](int n) { return vreinterpretq_f32_u32(x.of[n]); });
}

inline Words select(Lanes lanes, Words yes, Words no) {
  const Words mask = spread(lanes);
  return words([&](int n) { return vbslq_u32(mask.of[n], yes.of[n], no.of[n]); });
}
inline Floats select(Lanes lanes, Floats yes, Floats no) {
  return floats_of(select(lanes, words_of(yes), words_of(no)));
}
inline Floats keep(Lanes lanes, Floats x) { return select(lanes, x, zeros()); }
inline Lanes greater(Floats a, Floats b) {
  return gather_lanes(words([&](int n) { return vcgtq_f32(a.of[n], b.of[n]); }));
}
inline Lanes equal(Floats a, Floats b) {
  return gather_lanes(words([&](int n) { return vceqq_f32(a.of[n], b.of[n]); }));
}
inline Lanes is_nan(Floats x) { return static_cast<Lanes>(~equal(x, x)); }

// Halves are joined until one lane is left, as AVX-512's own reductions do.
template <typename Join>
inline float join_lanes(Floats x, const Join& join) {
  const float32x4_t four = join(join(x.of[0], x.of[2]), join(x.of[1], x.of[3]));
  const float32x4_t two = join(four, vextq_f32(four, four, 2));
  return vgetq_lane_f32(join(two, vrev64q_f32(two)), 0);
}
inline float sum_of_lanes(Floats x) {
  return join_lanes(x, [](float32x4_t a, float32x4_t b) { return vaddq_f32(a, b); });
}
// sum_of_lanes() of four vectors, in the order of AVX-512's.
inline void store_sums(float* to, Floats a, Floats b, Floats c, Floats d) {
  const auto pair = [](float32x4_t x, float32x4_t y) {
    return vreinterpretq_f64_f32(vaddq_f32(vzip1q_f32(x, y), vzip2q_f32(x, y)));
  };
  const Floats sums = floats([&](int n) {
    const float64x2_t ab = pair(a.of[n], b.of[n]), cd = pair(c.of[n], d.of[n]);
    return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(ab, cd)),
                     vreinterpretq_f32_f64(vzip2q_f64(ab, cd)));
  });
  vst1q_f32(to, vaddq_f32(vaddq_f32(sums.of[0], sums.of[2]), vaddq_f32(sums.of[1], sums.of[3])));
}
inline float max_of_lanes(Floats x) { return join_lanes(x, larger); }
inline int32_t min_of_lanes(Words x) {
  const auto signed_of = [&](int n) { return vreinterpretq_s32_u32(x.of[n]); };
  return vminvq_s32(
      vminq_s32(vminq_s32(signed_of(0), signed_of(1)), vminq_s32(signed_of(2), signed_of(3))));
}

// Sums of squares in double precision.
struct Squares {
  float64x2_t sums[8] = {};  // sum n: lanes 2 n and 2 n + 1
  void add(Floats x) {
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) {
      const float64x2_t low = vcvt_f64_f32(vget_low_f32(x.of[n]));
      const float64x2_t high = vcvt_high_f64_f32(x.of[n]);
      sums[2 * n] = vfmaq_f64(sums[2 * n], low, low);
      sums[2 * n + 1] = vfmaq_f64(sums[2 * n + 1], high, high);
    }
  }
  double sum() const {
    const auto four = [&](int n) {
      return vaddq_f64(vaddq_f64(sums[n], sums[n + 4]), vaddq_f64(sums[n + 2], sums[n + 6]));
    };
    return vaddvq_f64(vaddq_f64(four(0), four(1)));
  }
};

inline Words add(Words a, Words b) {
  return words([&](int n) { return vaddq_u32(a.of[n], b.of[n]); });
}
inline Words subtract(Words a, Words b) {
  return words([&](int n) { return vsubq_u32(a.of[n], b.of[n]); });
}
inline Words bit_and(Words a, Words b) {
  return words([&](int n) { return vandq_u32(a.of[n], b.of[n]); });
}
inline Words exclusive_or(Words a, Words b, Words c) {
  return words([&](int n) { return veorq_u32(veorq_u32(a.of[n], b.of[n]), c.of[n]); });
}
inline Words half_up(Words x) {
  return words([&](int n) { return vshlq_n_u32(x.of[n], 16); });
}
inline Words half_down(Words x) {
  return words([&](int n) { return vshrq_n_u32(x.of[n], 16); });
}
inline Words add_odd(Words x, Words of) { return add(x, bit_and(half_down(of), broadcast(1))); }
inline Lanes at_least_unsigned(Words a, Words b) {
  return gather_lanes(words([&](int n) { return vcgeq_u32(a.of[n], b.of[n]); }));
}
inline Lanes below_unsigned(Words a, Words b) {
  return static_cast<Lanes>(~at_least_unsigned(a, b));
}

inline void multiply_wide(Words x, uint32_t multiplier, Words& high, Words& low) {
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {
    const auto first =
        vreinterpretq_u32_u64(vmull_u32(vget_low_u32(x.of[n]), vdup_n_u32(multiplier)));
    const auto last = vreinterpretq_u32_u64(vmull_high_u32(x.of[n], vdupq_n_u32(multiplier)));
    low.of[n] = vuzp1q_u32(first, last);
    high.of[n] = vuzp2q_u32(first, last);
  }
}

// Rows a to d to columns.
inline void transpose_4x4(float32x4_t& a, float32x4_t& b, float32x4_t& c, float32x4_t& d) {
  const auto pairs = [](float32x4_t x) { return vreinterpretq_f64_f32(x); };
  const auto row = [](float64x2_t x) { return vreinterpretq_f32_f64(x); };
  const float64x2_t ab_even = pairs(vtrn1q_f32(a, b)), ab_odd = pairs(vtrn2q_f32(a, b));
  const float64x2_t cd_even = pairs(vtrn1q_f32(c, d)), cd_odd = pairs(vtrn2q_f32(c, d));
  a = row(vtrn1q_f64(ab_even, cd_even));
  b = row(vtrn1q_f64(ab_odd, cd_odd));
  c = row(vtrn2q_f64(ab_even, cd_even));
  d = row(vtrn2q_f64(ab_odd, cd_odd));
}
inline void transpose_16x16(Floats (&r)[16]) {
  Floats t[16];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // block j of rows 4 i to 4 i + 3 becomes block i of rows 4 j on
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      for (int n = 0; n < 4; ++n) t[4 * j + n].of[i] = r[4 * i + n].of[j];
      transpose_4x4(t[4 * j].of[i], t[4 * j + 1].of[i], t[4 * j + 2].of[i], t[4 * j + 3].of[i]);
    }
  }
  for (int n = 0; n < 16; ++n) r[n] = t[n];
}

}  // namespace lra::kernels::neon
