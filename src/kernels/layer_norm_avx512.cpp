#include "kernels/layer_norm.h"
#include "kernels/simd.h"

namespace lra::kernels::avx512 {
namespace {

// The part of one row that both passes share.
struct Row {
  __m512 mean, rstd;

  template <typename Lanes, typename T>
  __m512 xhat(Lanes lanes, const T* x) const {
    return _mm512_mul_ps(_mm512_sub_ps(load_lanes(lanes, x), mean), rstd);
  }
};

}  // namespace

template <typename T>
void layer_norm_rows_backward(const LayerNormBackward<T>& p, int64_t begin, int64_t end,
                              float* grad_gamma, float* grad_beta) {
  std::fill_n(grad_gamma, p.columns, 0.0f);
  std::fill_n(grad_beta, p.columns, 0.0f);
  const float share = 1.0f / static_cast<float>(p.columns);
  for (int64_t r = begin; r < end; ++r) {
    const T *grad = p.grad + r * p.columns, *x = p.x + r * p.columns;
    const Row row{_mm512_set1_ps(p.mean[r]), _mm512_set1_ps(p.rstd[r])};
    __m512 mean = _mm512_setzero_ps(), projection = mean;  // of g, and of g xhat
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      // Beyond the last column dy is 0, and so is all that it multiplies.
      const __m512 dy = load_lanes(lanes, grad + c), xhat = row.xhat(lanes, x + c);
      const __m512 g = _mm512_mul_ps(dy, load_lanes(lanes, p.gamma + c));
      mean = _mm512_add_ps(mean, g);
      projection = _mm512_fmadd_ps(g, xhat, projection);
      store_lanes(grad_gamma + c, lanes,
                  _mm512_fmadd_ps(dy, xhat, load_lanes(lanes, grad_gamma + c)));
      store_lanes(grad_beta + c, lanes, _mm512_add_ps(dy, load_lanes(lanes, grad_beta + c)));
    });
    const __m512 mean_g = _mm512_set1_ps(_mm512_reduce_add_ps(mean) * share);
    const __m512 slope = _mm512_set1_ps(_mm512_reduce_add_ps(projection) * share);
    T* dx = p.dx + r * p.columns;
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      const __m512 dy = load_lanes(lanes, grad + c), xhat = row.xhat(lanes, x + c);
      const __m512 g = _mm512_fmsub_ps(dy, load_lanes(lanes, p.gamma + c), mean_g);
      store_lanes(dx + c, lanes, _mm512_mul_ps(row.rstd, _mm512_fnmadd_ps(xhat, slope, g)));
    });
  }
}

template void layer_norm_rows_backward(const LayerNormBackward<float>&, int64_t, int64_t, float*,
                                       float*);
template void layer_norm_rows_backward(const LayerNormBackward<Bf16>&, int64_t, int64_t, float*,
                                       float*);

}  // namespace lra::kernels::avx512
