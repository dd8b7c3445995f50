#include "kernels/adam/adam.h"

#include <cmath>

#include "base/parallel.h"
#include "kernels/adam/chunked_sum.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
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

  static Floats lanes(double x) { return broadcast(static_cast<float>(x)); }

  Floats beta1, beta2, rest1, rest2, correction2;
  Floats rate;  // learning rate times the bias correction of m
  Floats epsilon, decay, grad_scale;
};

}  // namespace

void adam_step(int64_t count, float* parameters, const float* gradients, float* m, float* v,
               const AdamStep& step) {
  check_adam_step(step);
  const Constants c(step);
  constexpr int64_t kAtLeast = 16384;
  parallel_ranges(count, kAtLeast, [&](int64_t begin, int64_t end) {
    for_each_run(end - begin, [&](int64_t i, auto lanes) {
      const int64_t n = begin + i;
      const Floats g = c.grad_scale * load_lanes(lanes, gradients + n);
      const Floats new_m = multiply_add(c.beta1, load_lanes(lanes, m + n), c.rest1 * g);
      const Floats new_v = multiply_add(c.beta2, load_lanes(lanes, v + n), c.rest2 * g * g);
      const Floats root = sqrt(new_v * c.correction2);
      const Floats update = c.rate * new_m / (root + c.epsilon);
      const Floats p = load_lanes(lanes, parameters + n);
      const Floats new_p = subtract_product(p, c.decay, p) - update;
      store_lanes(m + n, lanes, new_m);
      store_lanes(v + n, lanes, new_v);
      store_lanes(parameters + n, lanes, new_p);
    });
  });
}

SumOfSquares sum_of_squares(int64_t count, const float* x) {
  return sum_in_chunks(count, [x](int64_t begin, int64_t end) -> SumOfSquares {
    Squares squares;
    for_each_run(end - begin,
                 [&](int64_t n, auto lanes) { squares.add(load_lanes(lanes, x + begin + n)); });
    const double sum = squares.sum();
    // The sum of squares of finite floats never overflows a double, so a finite sum proves that all
    // are finite.
    return {sum, std::isfinite(sum)};
  });
}

}  // namespace lra::kernels::LRA_ISA
