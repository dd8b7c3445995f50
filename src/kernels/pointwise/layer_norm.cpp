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
  if constexpr (!std::is_same_v<T, double>) {
    LRA_RETURN_CALL(choose(Op::kLayerNormForward), layer_norm_rows<T>);
  } else {
    return ref::layer_norm_rows<T>;
  }
}

template <typename T>
RowsBackward<T> choose_rows_backward() {
  if constexpr (!std::is_same_v<T, double>) {
    LRA_RETURN_CALL(choose(Op::kLayerNormBackward), layer_norm_rows_backward<T>);
  } else {
    return ref::layer_norm_rows_backward<T>;
  }
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
  // [runs, 2, columns]: of gamma, then of beta.
  const auto sums = std::make_unique_for_overwrite<W[]>(static_cast<size_t>(runs * 2 * p.columns));
  parallel_for_each(runs, [&](int64_t run) {
    W* of_run = sums.get() + run * 2 * p.columns;
    rows_backward(p, run * kNormRows, std::min(p.rows, (run + 1) * kNormRows), of_run,
                  of_run + p.columns);
  });
  std::fill_n(p.grad_gamma, p.columns, W{0});
  std::fill_n(p.grad_beta, p.columns, W{0});
  for (int64_t run = 0; run < runs; ++run) {
    const W* of_run = sums.get() + run * 2 * p.columns;
    for (int64_t c = 0; c < p.columns; ++c) {
      p.grad_gamma[c] += of_run[c];
      p.grad_beta[c] += of_run[p.columns + c];
    }
  }
}

template <typename T>
void ref::layer_norm_rows(const LayerNormForward<T>& p, int64_t begin, int64_t end) {
  using W = Wide<T>;
  const auto count = static_cast<double>(p.columns);
  for (int64_t r = begin; r < end; ++r) {
    const T* x = p.x + r * p.columns;
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < p.columns; ++c) sum += static_cast<W>(x[c]);
    const W mean = sum / count;
    for (int64_t c = 0; c < p.columns; ++c) squares += std::pow(static_cast<W>(x[c]) - mean, 2);
    const W rstd = 1 / std::sqrt(squares / count + p.eps);
    for (int64_t c = 0; c < p.columns; ++c) {
      p.y[r * p.columns + c] = (static_cast<W>(x[c]) - mean) * rstd * p.gamma[c] + p.beta[c];
    }
    p.mean[r] = mean;
    p.rstd[r] = rstd;
  }
}

template <typename T>
void ref::layer_norm_rows_backward(const LayerNormBackward<T>& p, int64_t begin, int64_t end,
                                   Wide<T>* grad_gamma, Wide<T>* grad_beta) {
  using W = Wide<T>;
  std::fill_n(grad_gamma, p.columns, W{0});
  std::fill_n(grad_beta, p.columns, W{0});
  for (int64_t r = begin; r < end; ++r) {
    const T *grad = p.grad + r * p.columns, *x = p.x + r * p.columns;
    W mean = 0, projection = 0;  // of g, and of g xhat
    for (int64_t c = 0; c < p.columns; ++c) {
      const W xhat = (static_cast<W>(x[c]) - p.mean[r]) * p.rstd[r], dy = grad[c];
      mean += dy * p.gamma[c];
      projection += dy * p.gamma[c] * xhat;
      grad_gamma[c] += dy * xhat;
      grad_beta[c] += dy;
    }
    mean /= static_cast<W>(p.columns);
    projection /= static_cast<W>(p.columns);
    for (int64_t c = 0; c < p.columns; ++c) {
      const W xhat = (static_cast<W>(x[c]) - p.mean[r]) * p.rstd[r];
      const W g = static_cast<W>(grad[c]) * p.gamma[c];
      p.dx[r * p.columns + c] = p.rstd[r] * (g - mean - xhat * projection);
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
