// One task of a convolution by transforms, on rows as fourier_rows.h describes them, which also
// have load_some(from, count) and store_some(to, count) for up to sixteen numbers of any type.
//
// A transform rounds to its largest channel. So that a small one keeps its own precision beside a
// large partner, channels b are multiplied on the way in by powers of two that make them about as
// large as channels a, and by the inverse on the way out.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "kernels/convolution/fourier_rows.h"
#include "kernels/convolution/transforms.h"

namespace lra::kernels {

template <typename Row, typename T>
class TransformOf {
 public:
  using W = Wide<T>;

  static TransformParts<T> parts() {
    return {[](const Convolution<T>& p, const FourierTables<W>& tables, const TransformTask& task,
               const TransformArrays<T>& arrays,
               W* space) { TransformOf(p, tables, task, space).forward(arrays.y); },
            [](const Convolution<T>& p, const FourierTables<W>& tables, const TransformTask& task,
               const TransformArrays<T>& arrays,
               W* space) { TransformOf(p, tables, task, space).backward(arrays); }};
  }

 private:
  using F = Fourier<Row>;

  TransformOf(const Convolution<T>& p, const FourierTables<W>& tables, const TransformTask& task,
              W* space)
      : p_(p),
        tables_(tables),
        task_(task),
        first_(count(p.channels - task.channel)),
        second_(count(p.channels - task.channel - kFourierLanes)),
        kernel_(space),
        x_(space + tables.size * kFourierRow),
        grad_(x_ + tables.size * kFourierRow),
        sums_(grad_ + tables.size * kFourierRow) {}

  // The bits of a floating-point number.
  using Bits = std::conditional_t<sizeof(W) == 4, uint32_t, uint64_t>;
  static constexpr int kMantissaBits = std::numeric_limits<W>::digits - 1;
  static constexpr int kBias = std::numeric_limits<W>::max_exponent - 1;

  static W power_of_two(int exponent) {
    return std::bit_cast<W>(static_cast<Bits>(exponent + kBias) << kMantissaBits);
  }
  // The power of two between the roots of two sums of squares, at most this one, so that products
  // of two of them stay normal numbers. 0 if one is 0, has underflowed or is not finite.
  static constexpr int kMaxExponent = 60;
  static int exponent_between(W a, W b) {
    const int of_a = static_cast<int>(std::bit_cast<Bits>(a) >> kMantissaBits);
    const int of_b = static_cast<int>(std::bit_cast<Bits>(b) >> kMantissaBits);
    const bool is_known = of_a > 0 && of_b > 0 && of_a <= 2 * kBias && of_b <= 2 * kBias;
    return is_known ? std::clamp((of_a - of_b) / 2, -kMaxExponent, kMaxExponent) : 0;
  }
  static int64_t count(int64_t left) {
    return left < 0 ? 0 : left < kFourierLanes ? left : kFourierLanes;
  }
  // The place on the circle of the kernel's number j: its lag.
  W* of_lag(W* circle, int64_t j) const {
    const int64_t lag = j - p_.future;
    return circle + (lag < 0 ? lag + tables_.size : lag) * kFourierRow;
  }
  int64_t place_of(int64_t example, int64_t t) const {
    return (example * p_.length + t) * p_.channels + task_.channel;
  }
  bool is_valid(int64_t example, int64_t t) const {
    return p_.valid == nullptr || p_.valid[example * p_.length + t] != 0;
  }

  // Powers of two for the channels b of an array in a transform.
  struct Balance {
    explicit Balance(const Squares<Row>& squares) {
      W a[kFourierLanes], b[kFourierLanes];
      squares.a.store(a);
      squares.b.store(b);
      int largest = 0;
      for (int64_t i = 0; i < kFourierLanes; ++i) {
        const int exponent = exponent_between(a[i], b[i]);
        in[i] = power_of_two(exponent);
        out[i] = power_of_two(-exponent);
        largest = std::max(largest, std::abs(exponent));
      }
      is_needed = largest > 0;
    }
    Row way_in() const { return Row::load(in); }
    Row way_out() const { return Row::load(out); }

    alignas(64) W in[kFourierLanes], out[kFourierLanes];
    bool is_needed;
  };

  // Adds the squares of the row.
  template <typename From>
  void load_row(const From* from, W* to, Squares<Row>& squares) const {
    const Row a = Row::load_some(from, first_);
    const Row b = second_ > 0 ? Row::load_some(from + kFourierLanes, second_) : Row::zero();
    a.store(to);
    b.store(to + kFourierLanes);
    squares.add(a, b);
  }
  template <typename To>
  void store_row(const W* from, const Row& of_b, To* to) const {
    Row::load(from).store_some(to, first_);
    if (second_ == 0) return;
    product(Row::load(from + kFourierLanes), of_b).store_some(to + kFourierLanes, second_);
  }
  static void multiply_b(W* row, const Row& factor) {
    product(Row::load(row + kFourierLanes), factor).store(row + kFourierLanes);
  }
  void clear(W* from, W* end) const {
    for (; from < end; from += kFourierLanes) Row::zero().store(from);
  }
  // The spectrum of an example of `array`.
  Balance transform(const T* array, int64_t example, W* z) const {
    Squares<Row> squares;
    for (int64_t t = 0; t < p_.length; ++t) {
      W* const to = z + t * kFourierRow;
      is_valid(example, t) ? load_row(array + place_of(example, t), to, squares)
                           : clear(to, to + kFourierRow);
    }
    clear(z + p_.length * kFourierRow, z + tables_.size * kFourierRow);
    const Balance balance(squares);
    for (int64_t t = 0; balance.is_needed && t < p_.length; ++t) {
      multiply_b(z + t * kFourierRow, balance.way_in());
    }
    F::forward(tables_.size, tables_.roots, z);
    return balance;
  }

  Balance transform_kernel(bool conjugate) const {
    clear(kernel_, kernel_ + tables_.size * kFourierRow);
    Squares<Row> squares;
    for (int64_t j = 0; j < p_.width; ++j) {
      load_row(p_.kernel + j * p_.channels + task_.channel, of_lag(kernel_, j), squares);
    }
    const Balance balance(squares);
    for (int64_t j = 0; balance.is_needed && j < p_.width; ++j) {
      multiply_b(of_lag(kernel_, j), balance.way_in());
    }
    F::forward(tables_.size, tables_.roots, kernel_);
    F::prepare_kernel(tables_, 1 / static_cast<W>(tables_.size), conjugate, kernel_);
    return balance;
  }
  // An example of `array` is the spectrum z times that of the kernel.
  void multiply(W* z, const Row& of_b, int64_t example, T* array) const {
    F::multiply(tables_, kernel_, z);
    F::inverse(tables_.size, tables_.roots, z);
    for (int64_t t = 0; t < p_.length; ++t) {
      W* const from = z + t * kFourierRow;
      if (!is_valid(example, t)) clear(from, from + kFourierRow);
      store_row(from, of_b, array + place_of(example, t));
    }
  }

  void forward(T* y) const {
    const Balance of_kernel = transform_kernel(false);
    for (int64_t example = task_.begin; example < task_.end; ++example) {
      const Balance of_x = transform(p_.x, example, x_);
      multiply(x_, product(of_x.way_out(), of_kernel.way_out()), example, y);
    }
  }

  void backward(const TransformArrays<T>& arrays) const {
    const Balance of_kernel =
        arrays.grad_x == nullptr ? Balance(Squares<Row>{}) : transform_kernel(true);
    clear(sums_, sums_ + tables_.size * kFourierRow);
    for (int64_t example = task_.begin; example < task_.end; ++example) {
      const Balance of_grad = transform(arrays.grad, example, grad_);
      if (arrays.grad_kernel != nullptr) {
        const Balance of_x = transform(p_.x, example, x_);
        F::add_correlation(tables_, product(of_grad.way_out(), of_x.way_out()), grad_, x_, sums_);
      }
      if (arrays.grad_x == nullptr) continue;
      multiply(grad_, product(of_grad.way_out(), of_kernel.way_out()), example, arrays.grad_x);
    }
    if (arrays.grad_kernel == nullptr) return;
    const Balance of_sums(F::squares_of_correlations(tables_, sums_));
    F::join_correlations(tables_, 1 / static_cast<W>(tables_.size), of_sums.way_in(), sums_);
    F::inverse(tables_.size, tables_.roots, sums_);
    for (int64_t j = 0; j < p_.width; ++j) {
      store_row(of_lag(sums_, j), of_sums.way_out(),
                arrays.grad_kernel + j * p_.channels + task_.channel);
    }
  }

  const Convolution<T>& p_;
  const FourierTables<W>& tables_;
  const TransformTask task_;
  const int64_t first_, second_;  // channels of both halves of a row
  W *const kernel_, *const x_, *const grad_, *const sums_;
};

}  // namespace lra::kernels
