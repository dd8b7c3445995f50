// Vectors of sixteen 32-bit numbers, for files that are compiled once for each instruction set:
// *_simd.cpp for all, *_avx512_bf16.cpp for AVX-512 only. Everything is in the namespace of the
// instruction set, LRA_ISA, so that none uses code that was compiled for another.
//
// simd_avx512.h, simd_avx2.h and simd_neon.h have, with the same names and the same results:
//   Floats, Words    sixteen floats; sixteen words of 32 bits
//   Lanes            a bit for each of the sixteen, lane 0 lowest
//   a + b, a * b     and the other operators of Floats; multiply_add(a, b, c) = a b + c,
//                    multiply_subtract(a, b, c) = a b - c, subtract_product(c, a, b) = c - a b,
//                    each rounded once
//   max(a, b)        and min: b where either is NaN
//   keep(lanes, x)   zeros in the other lanes
//   load_lanes(lanes, from), store_lanes(to, lanes, x): other lanes are read as zeros, not touched
//   sum_of_lanes(x)  eight sums of lanes n and n + 8, then four, two and one
//   store_sums(to, a, b, c, d): the sums of the lanes of four vectors, added in another order
//   multiply_wide(x, m, high, low): all 64 bits of the product of each word
//   times_power_of_two(x, n): x 2^n for whole n <= 127; below 2^-126 only AVX-512 gives no 0
//   add_odd(x, of)   x + 1 where bit 16 of `of` is set, else x; upper_halves(x) of the words
//   join(low, high)  thirty-two half words in their order
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rng.h"
#include "kernels/simd/bf16.h"

#if defined(__aarch64__)
#include "kernels/simd/simd_neon.h"
#elif defined(__AVX512F__)
#include "kernels/simd/simd_avx512.h"
#else
#include "kernels/simd/simd_avx2.h"
#endif

namespace lra::kernels::LRA_ISA {

inline constexpr int64_t kLanes = 16;

// Lanes [begin, end) of 16; bounds outside [0, 16] are cut.
inline Lanes lanes_between(int64_t begin, int64_t end) {
  const auto below = [](int64_t n) { return (1u << std::clamp<int64_t>(n, 0, kLanes)) - 1; };
  return static_cast<Lanes>(below(end) & ~below(begin));
}

// Bf16(x) of each lane, without the instructions that not every processor has.
inline HalfWords to_bf16(Floats x) {
  const Words sum = add_odd(add(words_of(x), broadcast(0x7FFF)), words_of(x));
  return upper_halves(select(is_nan(x), broadcast(0x7FC00000), sum));
}
inline Floats from_bf16(HalfWords x) { return floats_of(half_up(widen(x))); }

inline Floats load_lanes(Lanes lanes, const Bf16* from) {
  return from_bf16(load_half_words(lanes, from));
}
inline void store_lanes(Bf16* to, Lanes lanes, Floats x) {
  store_half_words(to, lanes, to_bf16(x));
}

// All sixteen lanes. Memory written by a masked store cannot be read again for about 20 cycles, so
// inner loops over an array that is read and written use no masks.
struct AllLanes {};
inline Floats keep(AllLanes, Floats x) { return x; }
inline Floats load_lanes(AllLanes, const float* from) { return load(from); }
inline Floats load_lanes(AllLanes, const Bf16* from) { return from_bf16(load_half_words(from)); }
inline void store_lanes(float* to, AllLanes, Floats x) { store(to, x); }
inline void store_lanes(Bf16* to, AllLanes, Floats x) { store_half_words(to, to_bf16(x)); }

// The first of `count` numbers in sixteen words of two; zeros after them.
inline Floats load_words(const Bf16* from, int64_t count) {
  if (count >= 2 * kLanes) {
    return floats_of(join(load_half_words(from), load_half_words(from + kLanes)));
  }
  return floats_of(join(load_half_words(lanes_between(0, count), from),
                        load_half_words(lanes_between(0, count - kLanes), from + kLanes)));
}

// Calls body(n, lanes) for each run of sixteen from n on, with a mask for a last one that is
// shorter.
template <typename F>
inline void for_each_run(int64_t count, const F& body) {
  int64_t n = 0;
  for (; n + kLanes <= count; n += kLanes) body(n, AllLanes{});
  if (n < count) body(n, lanes_between(0, count - n));
}

// 2^x for x <= 127, relative error 1.2e-7; below 2^-126 it may be 0, below 2^-150 it is, -infinity
// included; NaN stays NaN. x = n + f with n whole and |f| <= 1/2; the polynomial is the minimax one
// for 2^f of degree 6 (relative error 2e-9; degree 5 has 7.5e-8, which rounding then makes 2e-7).
inline Floats exp2(Floats x) {
  x = max(broadcast(-200.0f), x);  // second operand: the result for NaN
  const Floats n = nearest(x);
  const Floats f = x - n;
  Floats y = broadcast(1.534581197577063e-4f);
  y = multiply_add(y, f, broadcast(1.3399931385065756e-3f));
  y = multiply_add(y, f, broadcast(9.618488958659853e-3f));
  y = multiply_add(y, f, broadcast(5.5503287765567316e-2f));
  y = multiply_add(y, f, broadcast(2.402264689060621e-1f));
  y = multiply_add(y, f, broadcast(6.931472057374544e-1f));
  y = multiply_add(y, f, broadcast(1.0f));
  return times_power_of_two(y, n);
}

// elu(x) + 1: x + 1 for x > 0 and exp(x) otherwise (Clevert et al., arXiv:1511.07289); relative
// error 2e-7 * max(1, |x|).
inline Floats elu_plus_one(Floats x) {
  const Lanes above = greater(x, zeros());
  const Floats below = keep(static_cast<Lanes>(~above), x);
  return select(above, x + broadcast(1.0f), exp2(below * broadcast(1.44269504088896f)));
}

// Sixteen Philox blocks at once: word w of block n is lane n of words[w].
struct PhiloxLanes {
  Words words[4];
};

inline PhiloxLanes philox_lanes(PhiloxLanes counter, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  auto& c = counter.words;
#pragma GCC unroll 10
  for (int round = 0; round < philox::kRounds; ++round) {
    Words high0, low0, high1, low1;
    multiply_wide(c[0], philox::kMultiplier0, high0, low0);
    multiply_wide(c[2], philox::kMultiplier1, high1, low1);
    c[0] = exclusive_or(high1, c[1], broadcast(static_cast<int32_t>(k0)));
    c[2] = exclusive_or(high0, c[3], broadcast(static_cast<int32_t>(k1)));
    c[1] = low1;
    c[3] = low0;
    k0 += philox::kWeyl0;
    k1 += philox::kWeyl1;
  }
  return counter;
}

inline constexpr int64_t kDropoutGroup = 128;  // columns that sixteen blocks decide
inline constexpr int64_t kDropoutGroupVectors = kDropoutGroup / kLanes;

// Dropout decisions for the columns 128 group .. 128 group + 127 of a row: bit n of kept[v] is
// column 128 group + 16 v + n. The same decisions as dropout_value() in base/rng.h.
inline void dropout_keeps(uint64_t key, uint32_t threshold, uint32_t plane, uint32_t row,
                          int64_t group, uint16_t* kept) {
  const auto first = static_cast<int32_t>(group * kLanes);
  const PhiloxLanes random =
      philox_lanes({{add(counting(), broadcast(first)), broadcast(static_cast<int32_t>(row)),
                     broadcast(static_cast<int32_t>(plane)), broadcast(0)}},
                   key);
  // A 16-bit value is below the threshold exactly when, moved to the upper half of a word over any
  // lower half, it is below the threshold moved likewise.
  const Words bound = broadcast(static_cast<int32_t>(threshold << 16));
#pragma GCC unroll 4
  for (int w = 0; w < 4; ++w) {
    kept[2 * w] = at_least_unsigned(half_up(random.words[w]), bound);
    kept[2 * w + 1] = at_least_unsigned(random.words[w], bound);
  }
}

}  // namespace lra::kernels::LRA_ISA
