#include "kernels/pointwise/layer_norm.h"

#include <cmath>

#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Statistics that turn a row into its xhat.
struct Row {
  Floats mean, rstd;

  template <typename Mask, typename T>
  Floats xhat(Mask lanes, const T* x) const {
    return (load_lanes(lanes, x) - mean) * rstd;
  }
};

}  // namespace

template <typename T>
void layer_norm_rows(const LayerNormForward<T>& p, int64_t begin, int64_t end) {
  const auto count = static_cast<float>(p.columns), eps = static_cast<float>(p.eps);
  for (int64_t r = begin; r < end; ++r) {
    const T* x = p.x + r * p.columns;
    T* y = p.y + r * p.columns;
    Floats sum = zeros(), squares = sum;
    for_each_run(p.columns, [&](int64_t c, auto lanes) { sum = sum + load_lanes(lanes, x + c); });
    const float mean_of_row = sum_of_lanes(sum) / count;
    const Floats mean = broadcast(mean_of_row);
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      const Floats away = keep(lanes, load_lanes(lanes, x + c) - mean);
      squares = multiply_add(away, away, squares);
    });
    const float rstd = 1.0f / std::sqrt(sum_of_lanes(squares) / count + eps);
    const Row row{mean, broadcast(rstd)};
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      const Floats gamma = load_lanes(lanes, p.gamma + c), beta = load_lanes(lanes, p.beta + c);
      store_lanes(y + c, lanes, multiply_add(row.xhat(lanes, x + c), gamma, beta));
    });
    p.mean[r] = mean_of_row;
    p.rstd[r] = rstd;
  }
}

template <typename T>
void layer_norm_rows_backward(const LayerNormBackward<T>& p, int64_t begin, int64_t end,
                              float* grad_gamma, float* grad_beta) {
  std::fill_n(grad_gamma, p.columns, 0.0f);
  std::fill_n(grad_beta, p.columns, 0.0f);
  const float share = 1.0f / static_cast<float>(p.columns);
  for (int64_t r = begin; r < end; ++r) {
    const T *grad = p.grad + r * p.columns, *x = p.x + r * p.columns;
    const Row row{broadcast(p.mean[r]), broadcast(p.rstd[r])};
    Floats mean = zeros(), projection = mean;  // of g, and of g xhat
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      // Beyond the last column dy is 0, and so is all that it multiplies.
      const Floats dy = load_lanes(lanes, grad + c), xhat = row.xhat(lanes, x + c);
      const Floats g = dy * load_lanes(lanes, p.gamma + c);
      mean = mean + g;
      projection = multiply_add(g, xhat, projection);
      store_lanes(grad_gamma + c, lanes, multiply_add(dy, xhat, load_lanes(lanes, grad_gamma + c)));
      store_lanes(grad_beta + c, lanes, dy + load_lanes(lanes, grad_beta + c));
    });
    const Floats mean_g = broadcast(sum_of_lanes(mean) * share);
    const Floats slope = broadcast(sum_of_lanes(projection) * share);
    T* dx = p.dx + r * p.columns;
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      const Floats dy = load_lanes(lanes, grad + c), xhat = row.xhat(lanes, x + c);
      const Floats g = multiply_subtract(dy, load_lanes(lanes, p.gamma + c), mean_g);
      store_lanes(dx + c, lanes, row.rstd * subtract_product(g, xhat, slope));
    });
  }
}

template void layer_norm_rows(const LayerNormForward<float>&, int64_t, int64_t);
template void layer_norm_rows(const LayerNormForward<Bf16>&, int64_t, int64_t);
template void layer_norm_rows_backward(const LayerNormBackward<float>&, int64_t, int64_t, float*,
                                       float*);
template void layer_norm_rows_backward(const LayerNormBackward<Bf16>&, int64_t, int64_t, float*,
                                       float*);

}  // namespace lra::kernels::LRA_ISA
