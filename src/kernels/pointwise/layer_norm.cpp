#include "kernels/pointwise/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/parallel.h"
#include "kernels/choice.h"

namespace lra::kernels {
namespace {

template <typename T>
using Rows = void (*)(const LayerNormForward<T>&, int64_t, int64_t);
template <typename T>
using RowsBackward = void (*)(const LayerNormBackward<T>&, int64_t, int64_t, Wide<T>*, Wide<T>*);

template <typename T>
Rows<T> choose_rows() {
  LRA_RETURN_BEST(T, Op::kLayerNormForward, layer_norm_rows<T>);
}

template <typename T>
RowsBackward<T> choose_rows_backward() {
  LRA_RETURN_BEST(T, Op::kLayerNormBackward, layer_norm_rows_backward<T>);
}

}  // namespace

template <typename T>
void layer_norm_forward(const LayerNormForward<T>& p) {
  const Rows<T> rows = choose_rows<T>();
  parallel_for_each((p.rows + kNormRows - 1) / kNormRows, [&](int64_t run) {
    rows(p, run * kNormRows, std::min(p.rows, (run + 1) * kNormRows));
  });
}

template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p) {
  using W = Wide<T>;
  const RowsBackward<T> rows_backward = choose_rows_backward<T>();
  const int64_t runs = (p.rows + kNormRows - 1) / kNormRows;
  const int64_t width = p.groups * p.columns;
  // [runs, 2, groups, columns]: of gamma, then of beta.
  const auto sums = std::make_unique_for_overwrite<W[]>(static_cast<size_t>(runs * 2 * width));
  parallel_for_each(runs, [&](int64_t run) {
    W* of_run = sums.get() + run * 2 * width;
    rows_backward(p, run * kNormRows, std::min(p.rows, (run + 1) * kNormRows), of_run,
                  p.grad_beta == nullptr ? nullptr : of_run + width);
  });
  const auto add_up = [&](const W* from, W* to) {
    std::fill_n(to, width, W{0});
    for (int64_t run = 0; run < runs; ++run) {
      for (int64_t c = 0; c < width; ++c) to[c] += from[run * 2 * width + c];
    }
  };
  add_up(sums.get(), p.grad_gamma);
  if (p.grad_beta != nullptr) add_up(sums.get() + width, p.grad_beta);
}

template <typename T>
void ref::layer_norm_rows(const LayerNormForward<T>& p, int64_t begin, int64_t end) {
  using W = Wide<T>;
  const auto count = static_cast<double>(p.columns);
  for (int64_t r = begin; r < end; ++r) {
    const T* x = p.x + r * p.columns;
    const int64_t group = r % p.groups * p.columns;
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < p.columns; ++c) sum += static_cast<W>(x[c]);
    const W mean = p.centered ? sum / count : 0;
    for (int64_t c = 0; c < p.columns; ++c) squares += std::pow(static_cast<W>(x[c]) - mean, 2);
    const W rstd = 1 / std::sqrt(squares / count + p.eps);
    for (int64_t c = 0; c < p.columns; ++c) {
      const W beta = p.beta == nullptr ? 0 : p.beta[group + c];
      p.y[r * p.columns + c] = (static_cast<W>(x[c]) - mean) * rstd * p.gamma[group + c] + beta;
    }
    p.mean[r] = mean;
    p.rstd[r] = rstd;
  }
}

template <typename T>
void ref::layer_norm_rows_backward(const LayerNormBackward<T>& p, int64_t begin, int64_t end,
                                   Wide<T>* grad_gamma, Wide<T>* grad_beta) {
  using W = Wide<T>;
  std::fill_n(grad_gamma, p.groups * p.columns, W{0});
  if (grad_beta != nullptr) std::fill_n(grad_beta, p.groups * p.columns, W{0});
  for (int64_t r = begin; r < end; ++r) {
    const T *grad = p.grad + r * p.columns, *x = p.x + r * p.columns;
    const int64_t group = r % p.groups * p.columns;
    W mean = 0, projection = 0;  // of g, and of g xhat
    for (int64_t c = 0; c < p.columns; ++c) {
      const W xhat = (static_cast<W>(x[c]) - p.mean[r]) * p.rstd[r], dy = grad[c];
      mean += dy * p.gamma[group + c];
      projection += dy * p.gamma[group + c] * xhat;
      grad_gamma[group + c] += dy * xhat;
      if (grad_beta != nullptr) grad_beta[group + c] += dy;
    }
    mean = p.centered ? mean / static_cast<W>(p.columns) : 0;
    projection /= static_cast<W>(p.columns);
    for (int64_t c = 0; c < p.columns; ++c) {
      const W xhat = (static_cast<W>(x[c]) - p.mean[r]) * p.rstd[r];
      const W g = static_cast<W>(grad[c]) * p.gamma[group + c];
      const W dx = p.rstd[r] * (g - mean - xhat * projection);
      const int64_t n = r * p.columns + c;
      p.dx[n] = p.beside == nullptr ? dx : static_cast<W>(p.beside[n]) + dx;
    }
  }
}

template void layer_norm_forward(const LayerNormForward<float>&);
template void layer_norm_forward(const LayerNormForward<Bf16>&);
template void layer_norm_forward(const LayerNormForward<double>&);
template void layer_norm_backward(const LayerNormBackward<float>&);
template void layer_norm_backward(const LayerNormBackward<Bf16>&);
template void layer_norm_backward(const LayerNormBackward<double>&);

}  // namespace lra::kernels
