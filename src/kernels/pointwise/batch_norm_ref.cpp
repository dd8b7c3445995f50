#include <algorithm>

#include "kernels/pointwise/batch_norm.h"

namespace lra::kernels::ref {
namespace {

bool is_valid(const uint8_t* valid, int64_t row) { return valid == nullptr || valid[row] != 0; }

template <typename T>
int64_t moments(const BatchNormForward<T>& p, int64_t begin, int64_t end, Wide<T>* mean,
                Wide<T>* squares) {
  using W = Wide<T>;
  int64_t count = 0;
  for (int64_t r = begin; r < end; ++r) count += is_valid(p.valid, r);
  for (int64_t c = 0; c < p.columns; ++c) {
    W sum = 0, square = 0;
    for (int64_t r = begin; r < end; ++r) {
      if (is_valid(p.valid, r)) sum += static_cast<W>(p.x[r * p.columns + c]);
    }
    mean[c] = sum / static_cast<W>(std::max<int64_t>(1, count));
    for (int64_t r = begin; r < end; ++r) {
      const W away = static_cast<W>(p.x[r * p.columns + c]) - mean[c];
      if (is_valid(p.valid, r)) square += away * away;
    }
    squares[c] = square;
  }
  return count;
}

template <typename T>
void forward(const BatchNormForward<T>& p, int64_t begin, int64_t end, const Wide<T>* slope) {
  using W = Wide<T>;
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t c = 0; c < p.columns; ++c) {
      const int64_t n = r * p.columns + c;
      p.y[n] =
          is_valid(p.valid, r) ? (static_cast<W>(p.x[n]) - p.mean[c]) * slope[c] + p.beta[c] : W{0};
    }
  }
}

template <typename T>
void sums_of_slice(const BatchNormBackward<T>& p, int64_t begin, int64_t end, Wide<T>* products,
                   Wide<T>* sums) {
  using W = Wide<T>;
  std::fill_n(products, p.columns, W{0});
  std::fill_n(sums, p.columns, W{0});
  for (int64_t r = begin; r < end; ++r) {
    if (!is_valid(p.valid, r)) continue;
    for (int64_t c = 0; c < p.columns; ++c) {
      const W grad = p.grad[r * p.columns + c];
      products[c] += grad * (static_cast<W>(p.x[r * p.columns + c]) - p.mean[c]);
      sums[c] += grad;
    }
  }
}

template <typename T>
void backward(const BatchNormBackward<T>& p, int64_t begin, int64_t end, const Wide<T>* of_grad,
              const Wide<T>* of_x, const Wide<T>* constant) {
  using W = Wide<T>;
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t c = 0; c < p.columns; ++c) {
      const int64_t n = r * p.columns + c;
      p.dx[n] = is_valid(p.valid, r)
                    ? static_cast<W>(p.grad[n]) * of_grad[c] +
                          (static_cast<W>(p.x[n]) - p.mean[c]) * of_x[c] + constant[c]
                    : W{0};
    }
  }
}

}  // namespace

template <typename T>
BatchNormPasses<T> batch_norm_passes() {
  return {moments<T>, forward<T>, sums_of_slice<T>, backward<T>};
}

template BatchNormPasses<float> batch_norm_passes();
template BatchNormPasses<Bf16> batch_norm_passes();
template BatchNormPasses<double> batch_norm_passes();

}  // namespace lra::kernels::ref
