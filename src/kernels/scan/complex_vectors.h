// Complex numbers of sixteen channels or states at a time, and the steps of a diagonal recurrence.
#pragma once

#include <type_traits>

#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

inline constexpr int64_t kScanChunk = 64;  // positions whose terms are summed separately

// Floats of a complex number for each channel.
inline constexpr int64_t kPair = 2 * kLanes;

// A real and an imaginary part for each channel, or with one plane only the real part.
template <int kPlanes>
struct Complex {
  Floats re, im;

  static Complex load_from(const float* from) {
    return {load(from), kPlanes == 2 ? load(from + kLanes) : zeros()};
  }
  void store_to(float* to) const {
    store(to, re);
    if constexpr (kPlanes == 2) store(to + kLanes, im);
  }
  // this = a this + x, with a or its conjugate.
  void advance(const Complex& a, Floats x) {
    if constexpr (kPlanes == 1) {
      re = multiply_add(a.re, re, x);
    } else {
      const Floats next = multiply_add(a.re, re, subtract_product(x, a.im, im));
      im = multiply_add(a.re, im, a.im * re);
      re = next;
    }
  }
  void advance_conjugate(const Complex& a, Floats x) {
    if constexpr (kPlanes == 1) {
      re = multiply_add(a.re, re, x);
    } else {
      const Floats next = multiply_add(a.re, re, multiply_add(a.im, im, x));
      im = subtract_product(a.re * im, a.im, re);
      re = next;
    }
  }
  // The same with a complex x.
  void advance(const Complex& a, const Complex& x) {
    const Floats next = multiply_add(a.re, re, subtract_product(x.re, a.im, im));
    im = multiply_add(a.re, im, multiply_add(a.im, re, x.im));
    re = next;
  }
  void advance_conjugate(const Complex& a, const Complex& x) {
    const Floats next = multiply_add(a.re, re, multiply_add(a.im, im, x.re));
    im = multiply_add(a.re, im, subtract_product(x.im, a.im, re));
    re = next;
  }
  // sum + Re(c this), and with the conjugate of c.
  Floats add_real(const Complex& c, Floats sum) const {
    sum = multiply_add(c.re, re, sum);
    if constexpr (kPlanes == 2) sum = subtract_product(sum, c.im, im);
    return sum;
  }
  Floats add_real_conjugate(const Complex& c, Floats sum) const {
    sum = multiply_add(c.re, re, sum);
    if constexpr (kPlanes == 2) sum = multiply_add(c.im, im, sum);
    return sum;
  }
  // this += r times a number, and times the conjugate of one.
  void add_scaled(const Complex& r, Floats factor) {
    re = multiply_add(r.re, factor, re);
    if constexpr (kPlanes == 2) im = multiply_add(r.im, factor, im);
  }
  void add_product_conjugate(const Complex& r, const Complex& s) {
    re = multiply_add(r.re, s.re, re);
    if constexpr (kPlanes == 2) {
      re = multiply_add(r.im, s.im, re);
      im = multiply_add(r.im, s.re, subtract_product(im, r.re, s.im));
    }
  }
};

// exp(2 pi i x), absolute error 4e-7 for x of at most one turn, and that of x, which grows with it,
// beyond: cos 2 y = 1 - 2 sin^2 y and sin 2 y = 2 sin y cos y for half the turn, whose minimax
// polynomials have errors of 4e-9.
inline Complex<2> turned_by(Floats x) {
  const Floats r = x - nearest(x), z = r * r;  // |r| <= 1/2
  Floats sine = broadcast(7.722224431722374e-2f);
  sine = multiply_add(sine, z, broadcast(-5.980464481788876e-1f));
  sine = multiply_add(sine, z, broadcast(2.5500316405447156f));
  sine = multiply_add(sine, z, broadcast(-5.1677069001849585f));
  sine = multiply_add(sine, z, broadcast(3.141592580568975f)) * r;
  Floats cosine = broadcast(-2.4396716610157958e-2f);
  cosine = multiply_add(cosine, z, broadcast(2.3493755911433806e-1f));
  cosine = multiply_add(cosine, z, broadcast(-1.335212056747587f));
  cosine = multiply_add(cosine, z, broadcast(4.058709164355852f));
  cosine = multiply_add(cosine, z, broadcast(-4.934802137229145f));
  cosine = multiply_add(cosine, z, broadcast(1.0f));
  const Floats twice = sine + sine;
  return {subtract_product(broadcast(1.0f), twice, sine), twice * cosine};
}

// Calls body(n, how many) for groups of kMost from n on, then of half as many, down to one.
template <int kMost, typename F>
void for_each_group(int64_t n, int64_t count, const F& body) {
  for (; n + kMost <= count; n += kMost) body(n, std::integral_constant<int, kMost>{});
  if constexpr (kMost > 1) for_each_group<kMost / 2>(n, count, body);
}

}  // namespace lra::kernels::LRA_ISA
