#include "kernels/adam.h"

#include <cmath>

#include "base/parallel.h"
#include "kernels/chunked_sum.h"
#include "kernels/simd.h"

namespace lra::kernels::avx512 {
namespace {

// The numbers of a step, worked out in double precision and kept in every lane.
struct Constants {
  explicit Constants(const AdamStep& step)
      : beta1(lanes(step.beta1)),
        beta2(lanes(step.beta2)),
        rest1(lanes(1 - step.beta1)),
        rest2(lanes(1 - step.beta2)),
        correction2(lanes(1 / (1 - std::pow(step.beta2, static_cast<double>(step.step + 1))))),
        rate(lanes(step.learning_rate /
                   (1 - std::pow(step.beta1, static_cast<double>(step.step + 1))))),
        epsilon(lanes(step.epsilon)),
        decay(lanes(step.learning_rate * step.weight_decay)),
        grad_scale(lanes(step.grad_scale)) {}

  static __m512 lanes(double x) { return _mm512_set1_ps(static_cast<float>(x)); }

  __m512 beta1, beta2, rest1, rest2, correction2;
  __m512 rate;  // learning rate times the bias correction of m
  __m512 epsilon, decay, grad_scale;
};

}  // namespace

void adam_step(int64_t count, float* parameters, const float* gradients, float* m, float* v,
               const AdamStep& step) {
  check_adam_step(step);
  const Constants c(step);
  constexpr int64_t kAtLeast = 16384;
  parallel_ranges(count, kAtLeast, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n += kLanes) {
      const __mmask16 lanes = lanes_between(0, end - n);
      const __m512 g = _mm512_mul_ps(c.grad_scale, _mm512_maskz_loadu_ps(lanes, gradients + n));
      const __m512 new_m =
          _mm512_fmadd_ps(c.beta1, _mm512_maskz_loadu_ps(lanes, m + n), _mm512_mul_ps(c.rest1, g));
      const __m512 new_v = _mm512_fmadd_ps(c.beta2, _mm512_maskz_loadu_ps(lanes, v + n),
                                           _mm512_mul_ps(_mm512_mul_ps(c.rest2, g), g));
      const __m512 root = _mm512_sqrt_ps(_mm512_mul_ps(new_v, c.correction2));
      const __m512 update =
          _mm512_div_ps(_mm512_mul_ps(c.rate, new_m), _mm512_add_ps(root, c.epsilon));
      const __m512 p = _mm512_maskz_loadu_ps(lanes, parameters + n);
      const __m512 new_p = _mm512_sub_ps(_mm512_fnmadd_ps(c.decay, p, p), update);
      _mm512_mask_storeu_ps(m + n, lanes, new_m);
      _mm512_mask_storeu_ps(v + n, lanes, new_v);
      _mm512_mask_storeu_ps(parameters + n, lanes, new_p);
    }
  });
}

SumOfSquares sum_of_squares(int64_t count, const float* x) {
  return sum_in_chunks(count, [x](int64_t begin, int64_t end) -> SumOfSquares {
    __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();
    for (int64_t n = begin; n < end; n += kLanes) {
      const __m512 values = _mm512_maskz_loadu_ps(lanes_between(0, end - n), x + n);
      const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(values));
      const __m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(values, 1));
      low = _mm512_fmadd_pd(a, a, low);
      high = _mm512_fmadd_pd(b, b, high);
    }
    const double sum = _mm512_reduce_add_pd(_mm512_add_pd(low, high));
    // No sum of squares of finite floats overflows a double, so the sum alone tells.
    return {sum, std::isfinite(sum)};
  });
}

}  // namespace lra::kernels::avx512
