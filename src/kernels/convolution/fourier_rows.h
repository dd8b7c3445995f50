// Fourier transforms and products of spectra on rows of sixteen numbers: vectors in
// transforms_simd.cpp, plain arrays in transforms.cpp. A Row has + and -, zero(), load(from),
// store(to), product(a, b), multiply_add(a, b, c) = a b + c, subtract_product(c, a, b) = c - a b,
// and broadcast(number). Everything here depends on it, so that code compiled for one instruction
// set serves no other.
//
// The passes work in place and leave the frequencies in an order of their own. A convolution needs
// no other: the way back undoes the passes from the last to the first. Each part that a pass leaves
// is finished before the next, so that all but the first passes stay in the cache.
#pragma once

#include "kernels/convolution/fourier.h"

namespace lra::kernels {

template <typename Row>
struct ComplexRow {
  using W = typename Row::Number;

  static ComplexRow load(const W* from) {
    return {Row::load(from), Row::load(from + kFourierLanes)};
  }
  void store(W* to) const {
    re.store(to);
    im.store(to + kFourierLanes);
  }
  friend ComplexRow operator+(const ComplexRow& a, const ComplexRow& b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend ComplexRow operator-(const ComplexRow& a, const ComplexRow& b) {
    return {a.re - b.re, a.im - b.im};
  }
  // Times the number whose real and imaginary parts lie at w, and times its conjugate.
  ComplexRow turned(const W* w) const {
    const Row c = Row::broadcast(w[0]), s = Row::broadcast(w[1]);
    return {subtract_product(product(re, c), im, s), multiply_add(re, s, product(im, c))};
  }
  ComplexRow turned_back(const W* w) const {
    const Row c = Row::broadcast(w[0]), s = Row::broadcast(w[1]);
    return {multiply_add(im, s, product(re, c)), subtract_product(product(im, c), re, s)};
  }
  ComplexRow scaled(W factor) const { return times(Row::broadcast(factor)); }
  ComplexRow times(const Row& real) const { return {product(re, real), product(im, real)}; }
  ComplexRow conjugate() const { return {re, Row::zero() - im}; }
  ComplexRow over_i() const { return {im, Row::zero() - re}; }

  Row re, im;
};

// sum + a b, and sum + conj(a) b.
template <typename Row>
ComplexRow<Row> add_product(const ComplexRow<Row>& sum, const ComplexRow<Row>& a,
                            const ComplexRow<Row>& b) {
  return {multiply_add(a.re, b.re, subtract_product(sum.re, a.im, b.im)),
          multiply_add(a.re, b.im, multiply_add(a.im, b.re, sum.im))};
}
template <typename Row>
ComplexRow<Row> add_conjugate_product(const ComplexRow<Row>& sum, const ComplexRow<Row>& a,
                                      const ComplexRow<Row>& b) {
  return {multiply_add(a.re, b.re, multiply_add(a.im, b.im, sum.re)),
          multiply_add(a.re, b.im, subtract_product(sum.im, a.im, b.re))};
}

// Sums of squares of the channels a and of their partners b.
template <typename Row>
struct Squares {
  void add(const Row& of_a, const Row& of_b) {
    a = multiply_add(of_a, of_a, a);
    b = multiply_add(of_b, of_b, b);
  }

  Row a = Row::zero(), b = Row::zero();
};

template <typename Row>
struct Fourier {
  using W = typename Row::Number;
  using C = ComplexRow<Row>;

  // The spectrum of z [n, kFourierRow]; `roots` begin with those of the pass over n places.
  static void forward(int64_t n, const W* roots, W* z) {
    if (n == 8) return eight(roots, z);
    if (n == 1) return;
    const int64_t radix = fourier_radix(n), part = n / radix, step = part * kFourierRow;
    for (int64_t j = 0; j < part; ++j, roots += 2 * (radix - 1)) {
      butterfly(radix, z + j * kFourierRow, step, roots);
    }
    for (int64_t r = 0; r < radix; ++r) forward(part, roots, z + r * step);
  }
  // z again, n times as large.
  static void inverse(int64_t n, const W* roots, W* z) {
    if (n == 8) return eight_back(roots, z);
    if (n == 1) return;
    const int64_t radix = fourier_radix(n), part = n / radix, step = part * kFourierRow;
    const W* const rest = roots + 2 * (radix - 1) * part;
    for (int64_t r = 0; r < radix; ++r) inverse(part, rest, z + r * step);
    for (int64_t j = 0; j < part; ++j, roots += 2 * (radix - 1)) {
      butterfly_back(radix, z + j * kFourierRow, step, roots);
    }
  }

  // A kernel's spectrum becomes what multiply() takes, times `factor`. With A and B the spectra of
  // channels a and b, x(f) = A + i B and conj x(-f) = A - i B, and the convolution's is
  //   A K_a + i B K_b = x(f) (K_a + K_b) / 2 + conj x(-f) (K_a - K_b) / 2.
  // Conjugate spectra turn the convolution around.
  static void prepare_kernel(const FourierTables<W>& tables, W factor, bool conjugate, W* kernel) {
    for (int64_t f = 0; f < tables.num_pairs; ++f) {
      const Places at(tables.pairs[f], kernel);
      if (at.is_one) {
        C::load(at.place).scaled(factor).store(at.place);
      } else {
        const Spectra twice(at);
        const C sum = (twice.a + twice.b).scaled(factor / 4);
        const C difference = (twice.a - twice.b).scaled(factor / 4);
        (conjugate ? sum.conjugate() : sum).store(at.place);
        (conjugate ? difference.conjugate() : difference).store(at.mirror);
      }
    }
  }
  static void multiply(const FourierTables<W>& tables, W* kernel, W* x) {
    const C zero{Row::zero(), Row::zero()};
    for (int64_t f = 0; f < tables.num_pairs; ++f) {
      const Places at(tables.pairs[f], x), by(tables.pairs[f], kernel);
      const C value = C::load(at.place), half_sum = C::load(by.place);
      if (at.is_one) {  // A, B, K_a and K_b are real
        C{product(value.re, half_sum.re), product(value.im, half_sum.im)}.store(at.place);
        continue;
      }
      const C mirror = C::load(at.mirror), half_difference = C::load(by.mirror);
      add_conjugate_product(add_product(zero, value, half_sum), mirror, half_difference)
          .store(at.place);
      add_product(add_conjugate_product(zero, mirror, half_sum), value, half_difference)
          .conjugate()
          .store(at.mirror);
    }
  }

  // sums += the spectra of the correlations of two arrays, 4 A conj(A') at a frequency's place and
  // 4 B conj(B') `of_b` at its mirror; where these are one, A A' + i B B' `of_b`.
  static void add_correlation(const FourierTables<W>& tables, const Row& of_b, W* z, W* other,
                              W* sums) {
    for (int64_t f = 0; f < tables.num_pairs; ++f) {
      const Places of_z(tables.pairs[f], z), of_other(tables.pairs[f], other),
          to(tables.pairs[f], sums);
      const C sum = C::load(to.place);
      if (to.is_one) {
        const C a = C::load(of_z.place), b = C::load(of_other.place);
        C{multiply_add(a.re, b.re, sum.re), multiply_add(product(a.im, of_b), b.im, sum.im)}.store(
            to.place);
        continue;
      }
      const Spectra one(of_z), two(of_other);
      add_conjugate_product(sum, two.a, one.a).store(to.place);
      add_conjugate_product(C::load(to.mirror), two.b, one.b.times(of_b)).store(to.mirror);
    }
  }
  // The squares of such sums, those of A and of B.
  static Squares<Row> squares_of_correlations(const FourierTables<W>& tables, W* sums) {
    Squares<Row> squares;
    for (int64_t f = 0; f < tables.num_pairs; ++f) {
      const Places at(tables.pairs[f], sums);
      const C a = C::load(at.place);
      if (at.is_one) {
        const C four = a.scaled(4);
        squares.add(four.re, four.im);
        continue;
      }
      const C b = C::load(at.mirror);
      squares.add(a.re, b.re);
      squares.add(a.im, b.im);
    }
    return squares;
  }
  // Such sums become a spectrum A + i B `of_b`, times `factor`.
  static void join_correlations(const FourierTables<W>& tables, W factor, const Row& of_b,
                                W* sums) {
    for (int64_t f = 0; f < tables.num_pairs; ++f) {
      const Places at(tables.pairs[f], sums);
      const C a = C::load(at.place);
      if (at.is_one) {
        C{a.re, product(a.im, of_b)}.scaled(factor).store(at.place);
        continue;
      }
      const C b = C::load(at.mirror).times(of_b), b_over_i = b.over_i();
      (a - b_over_i).scaled(factor / 4).store(at.place);
      (a + b_over_i).conjugate().scaled(factor / 4).store(at.mirror);
    }
  }

 private:
  struct Places {
    Places(FourierPair pair, W* z)
        : place(z + pair.place * kFourierRow),
          mirror(z + pair.mirror * kFourierRow),
          is_one(pair.place == pair.mirror) {}
    W *place, *mirror;
    bool is_one;
  };
  // Twice the spectra of channels a and b.
  struct Spectra {
    explicit Spectra(const Places& at) {
      const C value = C::load(at.place), mirror = C::load(at.mirror).conjugate();
      a = value + mirror;
      b = (value - mirror).over_i();
    }
    C a, b;
  };

  static void butterfly(int64_t radix, W* z, int64_t step, const W* roots) {
    const C a = C::load(z), b = C::load(z + step);
    if (radix == 2) {  // the last pass, of two places: no roots but 1
      (a + b).store(z);
      (a - b).store(z + step);
      return;
    }
    const C c = C::load(z + 2 * step);
    if (radix == 3) {
      const Triple t(a, b, c);
      (a + t.sum).store(z);
      (t.middle + t.side).turned(roots).store(z + step);
      (t.middle - t.side).turned(roots + 2).store(z + 2 * step);
      return;
    }
    const Four f(a, b, c, C::load(z + 3 * step));
    f.of[0].store(z);
    f.of[1].turned(roots).store(z + step);
    f.of[2].turned(roots + 2).store(z + 2 * step);
    f.of[3].turned(roots + 4).store(z + 3 * step);
  }
  static void butterfly_back(int64_t radix, W* z, int64_t step, const W* roots) {
    if (radix == 2) return butterfly(radix, z, step, roots);
    const C a = C::load(z), b = C::load(z + step).turned_back(roots),
            c = C::load(z + 2 * step).turned_back(roots + 2);
    if (radix == 3) {
      const Triple t(a, b, c);
      (a + t.sum).store(z);
      (t.middle - t.side).store(z + step);
      (t.middle + t.side).store(z + 2 * step);
      return;
    }
    const Four f(a, b, c, C::load(z + 3 * step).turned_back(roots + 4));
    for (int r = 0; r < 4; ++r) f.of[(4 - r) % 4].store(z + r * step);
  }

  // Eight places, a pass of radix four and one of two, without a way through memory in between.
  static void eight(const W* roots, W* z) {
    const Four even(at(z, 0), at(z, 2), at(z, 4), at(z, 6));
    const Four odd(at(z, 1), at(z, 3), at(z, 5), at(z, 7));
    for (int r = 0; r < 4; ++r) {
      const C turned = r == 0 ? odd.of[0] : odd.of[r].turned(roots + 6 + 2 * (r - 1));
      (even.of[r] + turned).store(z + 2 * r * kFourierRow);
      (even.of[r] - turned).store(z + (2 * r + 1) * kFourierRow);
    }
  }
  static void eight_back(const W* roots, W* z) {
    C even[4], odd[4];
    for (int r = 0; r < 4; ++r) {
      const C a = at(z, 2 * r), b = at(z, 2 * r + 1), difference = a - b;
      even[r] = a + b;
      odd[r] = r == 0 ? difference : difference.turned_back(roots + 6 + 2 * (r - 1));
    }
    const Four of_even(even[0], even[1], even[2], even[3]), of_odd(odd[0], odd[1], odd[2], odd[3]);
    for (int r = 0; r < 4; ++r) {
      of_even.of[(4 - r) % 4].store(z + 2 * r * kFourierRow);
      of_odd.of[(4 - r) % 4].store(z + (2 * r + 1) * kFourierRow);
    }
  }
  static C at(const W* z, int64_t place) { return C::load(z + place * kFourierRow); }

  // The transform of four places.
  struct Four {
    Four(const C& a, const C& b, const C& c, const C& d) {
      const C even = a + c, odd = b + d, difference = a - c, side = (b - d).over_i();
      of[0] = even + odd;
      of[1] = difference + side;
      of[2] = even - odd;
      of[3] = difference - side;
    }
    C of[4];
  };
  // Three places, with exp(-2 pi i / 3) = -1/2 - i sqrt(3) / 2.
  struct Triple {
    Triple(const C& a, const C& b, const C& c)
        : sum(b + c),
          middle(a - sum.scaled(static_cast<W>(0.5))),
          side((b - c).over_i().scaled(static_cast<W>(0.86602540378443864676))) {}
    C sum, middle, side;
  };
};

}  // namespace lra::kernels
