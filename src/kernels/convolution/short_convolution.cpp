#include "kernels/convolution/short_convolution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "kernels/example_sums.h"

namespace lra::kernels {
namespace ref {
namespace {

// The argument of SiLU.
template <typename T>
Wide<T> local(const ShortConvolution<T>& p, const ShortRows<T>& rows, int64_t c) {
  Wide<T> sum = p.bias[c];
  for (int64_t j = 0; j < p.width; ++j) {
    sum += p.kernel[j * p.channels + c] * Wide<T>{rows.of[j][c]};
  }
  return sum;
}

template <typename T>
void forward(const ShortConvolution<T>& p, int64_t example, int64_t begin, int64_t end, T* y) {
  const std::vector<T> zeros(static_cast<size_t>(p.channels), T(0));
  for (int64_t t = begin; t < end; ++t) {
    const ShortRows<T> rows(p, example, t, zeros.data());
    T* const to = y + (example * p.length + t) * p.channels;
    const bool is_valid = ShortRows<T>::is_valid(p, example, t);
    for (int64_t c = 0; c < p.channels; ++c) {
      const Wide<T> u = is_valid ? local(p, rows, c) : 0;
      to[c] = static_cast<T>(u / (1 + std::exp(-u)));
    }
  }
}

// The gradient of the argument of SiLU at position t.
template <typename T>
Wide<T> grad_local(const ShortConvolution<T>& p, const ShortRows<T>& rows, Wide<T> grad,
                   int64_t c) {
  using W = Wide<T>;
  const W u = local(p, rows, c);
  const W open = 1 / (1 + std::exp(-u)), closed = 1 / (1 + std::exp(u));
  return grad * open * (1 + u * closed);
}

template <typename T>
void backward(const ShortConvolution<T>& p, int64_t example, int64_t begin, int64_t end,
              const T* grad, T* grad_x, Wide<T>* shares) {
  using W = Wide<T>;
  const std::vector<T> zeros(static_cast<size_t>(p.channels), T(0));
  std::vector<W> of_x(static_cast<size_t>((end - begin) * p.channels), W{0});
  // Positions that x[begin] to x[end - 1] are read from.
  for (int64_t t = begin - p.future; t < end - p.future + p.width - 1; ++t) {
    if (!ShortRows<T>::is_valid(p, example, t)) continue;
    const ShortRows<T> rows(p, example, t, zeros.data());
    for (int64_t c = 0; c < p.channels; ++c) {
      const W g = grad_local(p, rows, W{grad[(example * p.length + t) * p.channels + c]}, c);
      for (int64_t j = 0; j < p.width; ++j) {
        const int64_t s = t + p.future - j;
        if (begin <= s && s < end) {
          of_x[(s - begin) * p.channels + c] += g * p.kernel[j * p.channels + c];
        }
        if (begin <= t && t < end) shares[j * p.channels + c] += g * W{rows.of[j][c]};
      }
      if (begin <= t && t < end) shares[p.width * p.channels + c] += g;
    }
  }
  for (int64_t s = begin; s < end; ++s) {
    const bool is_valid = ShortRows<T>::is_valid(p, example, s);
    for (int64_t c = 0; c < p.channels; ++c) {
      grad_x[(example * p.length + s) * p.channels + c] =
          is_valid ? static_cast<T>(of_x[(s - begin) * p.channels + c]) : T(0);
    }
  }
}

}  // namespace

template <typename T>
ShortConvolutionParts<T> short_convolution_parts() {
  return {forward<T>, backward<T>};
}
}  // namespace ref

namespace {

template <typename T>
ShortConvolutionParts<T> choose_short_parts() {
  LRA_RETURN_BEST(T, Op::kConvolution, short_convolution_parts<T>());
}

// Calls body(task, example, begin, end) for each task.
template <typename T, typename F>
void for_each_piece(const ShortConvolution<T>& p, const F& body) {
  LRA_CHECK(1 <= p.width && p.width <= kMostShortLags);
  LRA_CHECK(0 <= p.future && p.future < p.width);
  const int64_t pieces = (p.length + kShortRows - 1) / kShortRows;
  parallel_for_each(p.batch * pieces, [&](int64_t task) {
    const int64_t begin = task % pieces * kShortRows;
    body(task, task / pieces, begin, std::min(p.length, begin + kShortRows));
  });
}

}  // namespace

template <typename T>
void short_convolution_forward(const ShortConvolution<T>& p, T* y) {
  const ShortConvolutionParts<T> parts = choose_short_parts<T>();
  for_each_piece(p, [&](int64_t, int64_t example, int64_t begin, int64_t end) {
    parts.forward(p, example, begin, end, y);
  });
}

template <typename T>
void short_convolution_backward(const ShortConvolution<T>& p, const T* grad, T* grad_x,
                                Wide<T>* grad_parameters) {
  const ShortConvolutionParts<T> parts = choose_short_parts<T>();
  const int64_t tasks = p.batch * ((p.length + kShortRows - 1) / kShortRows);
  const int64_t count = (p.width + 1) * p.channels;
  std::vector<Wide<T>> shares(static_cast<size_t>(tasks * count), 0);
  for_each_piece(p, [&](int64_t task, int64_t example, int64_t begin, int64_t end) {
    parts.backward(p, example, begin, end, grad, grad_x, shares.data() + task * count);
  });
  sum_over_examples(shares.data(), tasks, count, grad_parameters);
}

#define LRA_INSTANTIATE(T)                                                 \
  template void short_convolution_forward(const ShortConvolution<T>&, T*); \
  template void short_convolution_backward(const ShortConvolution<T>&, const T*, T*, Wide<T>*);
LRA_INSTANTIATE(float)
LRA_INSTANTIATE(Bf16)
LRA_INSTANTIATE(double)
#undef LRA_INSTANTIATE

}  // namespace lra::kernels
