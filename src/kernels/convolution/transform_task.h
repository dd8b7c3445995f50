// One task of a convolution by transforms, on rows as fourier_rows.h describes them, which also
// have load_some(from, count) and store_some(to, count) for up to sixteen numbers of any type.
#pragma once

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

  template <typename From>
  void load_row(const From* from, W* to) const {
    Row::load_some(from, first_).store(to);
    (second_ > 0 ? Row::load_some(from + kFourierLanes, second_) : Row::zero())
        .store(to + kFourierLanes);
  }
  template <typename To>
  void store_row(const W* from, To* to) const {
    Row::load(from).store_some(to, first_);
    if (second_ > 0) Row::load(from + kFourierLanes).store_some(to + kFourierLanes, second_);
  }
  void clear(W* from, W* end) const {
    for (; from < end; from += kFourierLanes) Row::zero().store(from);
  }
  // The spectrum of an example of `array`.
  void transform(const T* array, int64_t example, W* z) const {
    for (int64_t t = 0; t < p_.length; ++t) {
      W* const to = z + t * kFourierRow;
      is_valid(example, t) ? load_row(array + place_of(example, t), to)
                           : clear(to, to + kFourierRow);
    }
    clear(z + p_.length * kFourierRow, z + tables_.size * kFourierRow);
    F::forward(tables_.size, tables_.roots, z);
  }

  void transform_kernel(bool conjugate) const {
    clear(kernel_, kernel_ + tables_.size * kFourierRow);
    for (int64_t j = 0; j < p_.width; ++j) {
      load_row(p_.kernel + j * p_.channels + task_.channel, of_lag(kernel_, j));
    }
    F::forward(tables_.size, tables_.roots, kernel_);
    F::prepare_kernel(tables_, 1 / static_cast<W>(tables_.size), conjugate, kernel_);
  }
  // An example of `array` is the spectrum z times that of the kernel.
  void multiply(W* z, int64_t example, T* array) const {
    F::multiply(tables_, kernel_, z);
    F::inverse(tables_.size, tables_.roots, z);
    for (int64_t t = 0; t < p_.length; ++t) {
      W* const from = z + t * kFourierRow;
      if (!is_valid(example, t)) clear(from, from + kFourierRow);
      store_row(from, array + place_of(example, t));
    }
  }

  void forward(T* y) const {
    transform_kernel(false);
    for (int64_t example = task_.begin; example < task_.end; ++example) {
      transform(p_.x, example, x_);
      multiply(x_, example, y);
    }
  }

  void backward(const TransformArrays<T>& arrays) const {
    if (arrays.grad_x != nullptr) transform_kernel(true);
    clear(sums_, sums_ + tables_.size * kFourierRow);
    for (int64_t example = task_.begin; example < task_.end; ++example) {
      transform(arrays.grad, example, grad_);
      if (arrays.grad_kernel != nullptr) {
        transform(p_.x, example, x_);
        F::add_correlation(tables_, grad_, x_, sums_);
      }
      if (arrays.grad_x != nullptr) multiply(grad_, example, arrays.grad_x);
    }
    if (arrays.grad_kernel == nullptr) return;
    F::join_correlations(tables_, 1 / static_cast<W>(tables_.size), sums_);
    F::inverse(tables_.size, tables_.roots, sums_);
    for (int64_t j = 0; j < p_.width; ++j) {
      store_row(of_lag(sums_, j), arrays.grad_kernel + j * p_.channels + task_.channel);
    }
  }

  const Convolution<T>& p_;
  const FourierTables<W>& tables_;
  const TransformTask task_;
  const int64_t first_, second_;  // channels of both halves of a row
  W *const kernel_, *const x_, *const grad_, *const sums_;
};

}  // namespace lra::kernels
