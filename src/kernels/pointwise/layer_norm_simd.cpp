#include "kernels/pointwise/layer_norm.h"

#include <cmath>

#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Statistics that turn a row into its xhat.
template <bool kCentered>
struct Row {
  Floats mean, rstd;

  template <typename Mask, typename T>
  Floats xhat(Mask lanes, const T* x) const {
    const Floats value = load_lanes(lanes, x);
    return (kCentered ? value - mean : value) * rstd;
  }
};

// The group of the next row.
class Groups {
 public:
  Groups(int64_t count, int64_t row) : count_(count), now_(row % count) {}
  int64_t next() {
    const int64_t group = now_;
    now_ = group + 1 == count_ ? 0 : group + 1;
    return group;
  }

 private:
  const int64_t count_;
  int64_t now_;
};

template <bool kCentered, typename T>
void forward_rows(const LayerNormForward<T>& p, int64_t begin, int64_t end) {
  const auto count = static_cast<float>(p.columns), eps = static_cast<float>(p.eps);
  Groups groups(p.groups, begin);
  for (int64_t r = begin; r < end; ++r) {
    const T* x = p.x + r * p.columns;
    T* y = p.y + r * p.columns;
    const int64_t group = groups.next() * p.columns;
    float mean_of_row = 0;
    if constexpr (kCentered) {
      Floats sum = zeros();
      for_each_run(p.columns, [&](int64_t c, auto lanes) { sum = sum + load_lanes(lanes, x + c); });
      mean_of_row = sum_of_lanes(sum) / count;
    }
    const Floats mean = broadcast(mean_of_row);
    Floats squares = zeros();
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      Floats away = load_lanes(lanes, x + c);
      if constexpr (kCentered) away = keep(lanes, away - mean);
      squares = multiply_add(away, away, squares);
    });
    const float rstd = 1.0f / std::sqrt(sum_of_lanes(squares) / count + eps);
    const Row<kCentered> row{mean, broadcast(rstd)};
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      const Floats gamma = load_lanes(lanes, p.gamma + group + c), xhat = row.xhat(lanes, x + c);
      store_lanes(y + c, lanes,
                  p.beta == nullptr
                      ? xhat * gamma
                      : multiply_add(xhat, gamma, load_lanes(lanes, p.beta + group + c)));
    });
    p.mean[r] = mean_of_row;
    p.rstd[r] = rstd;
  }
}

template <bool kCentered, bool kBeside, typename T>
void backward_rows(const LayerNormBackward<T>& p, int64_t begin, int64_t end, float* grad_gamma,
                   float* grad_beta) {
  std::fill_n(grad_gamma, p.groups * p.columns, 0.0f);
  if (grad_beta != nullptr) std::fill_n(grad_beta, p.groups * p.columns, 0.0f);
  const float share = 1.0f / static_cast<float>(p.columns);
  Groups groups(p.groups, begin);
  for (int64_t r = begin; r < end; ++r) {
    const T *grad = p.grad + r * p.columns, *x = p.x + r * p.columns;
    const int64_t group = groups.next() * p.columns;
    const float* const gamma = p.gamma + group;
    const Row<kCentered> row{broadcast(p.mean[r]), broadcast(p.rstd[r])};
    Floats mean = zeros(), projection = mean;  // of g, and of g xhat
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      // Beyond the last column dy is 0, and so is all that it multiplies.
      const Floats dy = load_lanes(lanes, grad + c), xhat = row.xhat(lanes, x + c);
      const Floats g = dy * load_lanes(lanes, gamma + c);
      if constexpr (kCentered) mean = mean + g;
      projection = multiply_add(g, xhat, projection);
      float* const of_gamma = grad_gamma + group + c;
      store_lanes(of_gamma, lanes, multiply_add(dy, xhat, load_lanes(lanes, of_gamma)));
      if (grad_beta == nullptr) return;
      float* const of_beta = grad_beta + group + c;
      store_lanes(of_beta, lanes, dy + load_lanes(lanes, of_beta));
    });
    const Floats mean_g = broadcast(kCentered ? sum_of_lanes(mean) * share : 0);
    const Floats slope = broadcast(sum_of_lanes(projection) * share);
    T* dx = p.dx + r * p.columns;
    const T* beside = kBeside ? p.beside + r * p.columns : nullptr;
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      const Floats dy = load_lanes(lanes, grad + c), xhat = row.xhat(lanes, x + c);
      const Floats g = multiply_subtract(dy, load_lanes(lanes, gamma + c), mean_g);
      const Floats rest = subtract_product(g, xhat, slope);
      const Floats sum =
          kBeside ? multiply_add(row.rstd, rest, load_lanes(lanes, beside + c)) : row.rstd * rest;
      store_lanes(dx + c, lanes, sum);
    });
  }
}

}  // namespace

template <typename T>
void layer_norm_rows(const LayerNormForward<T>& p, int64_t begin, int64_t end) {
  p.centered ? forward_rows<true>(p, begin, end) : forward_rows<false>(p, begin, end);
}

template <typename T>
void layer_norm_rows_backward(const LayerNormBackward<T>& p, int64_t begin, int64_t end,
                              float* grad_gamma, float* grad_beta) {
  const auto rows = [&]<bool kBeside>() {
    p.centered ? backward_rows<true, kBeside>(p, begin, end, grad_gamma, grad_beta)
               : backward_rows<false, kBeside>(p, begin, end, grad_gamma, grad_beta);
  };
  p.beside == nullptr ? rows.template operator()<false>() : rows.template operator()<true>();
}

template void layer_norm_rows(const LayerNormForward<float>&, int64_t, int64_t);
template void layer_norm_rows(const LayerNormForward<Bf16>&, int64_t, int64_t);
template void layer_norm_rows_backward(const LayerNormBackward<float>&, int64_t, int64_t, float*,
                                       float*);
template void layer_norm_rows_backward(const LayerNormBackward<Bf16>&, int64_t, int64_t, float*,
                                       float*);

}  // namespace lra::kernels::LRA_ISA
