#include <cmath>

#include "base/parallel.h"
#include "kernels/adam/adam.h"
#include "kernels/adam/chunked_sum.h"

namespace lra::kernels::ref {

template <typename T>
void adam_step(int64_t count, T* parameters, const T* gradients, T* m, T* v, const AdamStep& step) {
  check_adam_step(step);
  const auto steps = static_cast<double>(step.step + 1);
  const T correction1 = static_cast<T>(1 / (1 - std::pow(step.beta1, steps)));
  const T correction2 = static_cast<T>(1 / (1 - std::pow(step.beta2, steps)));
  const T beta1 = static_cast<T>(step.beta1), beta2 = static_cast<T>(step.beta2);
  const T rest1 = static_cast<T>(1 - step.beta1), rest2 = static_cast<T>(1 - step.beta2);
  const T rate = static_cast<T>(step.learning_rate), epsilon = static_cast<T>(step.epsilon);
  const T decay = static_cast<T>(step.learning_rate * step.weight_decay);
  const T grad_scale = static_cast<T>(step.grad_scale);
  parallel_ranges(count, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T gradient = grad_scale * gradients[n];
      m[n] = beta1 * m[n] + rest1 * gradient;
      v[n] = beta2 * v[n] + rest2 * gradient * gradient;
      const T m_hat = correction1 * m[n], v_hat = correction2 * v[n];
      const T parameter = parameters[n];
      parameters[n] = parameter - rate * m_hat / (std::sqrt(v_hat) + epsilon) - decay * parameter;
    }
  });
}

template <typename T>
SumOfSquares sum_of_squares(int64_t count, const T* x) {
  return sum_in_chunks(count, [x](int64_t begin, int64_t end) {
    SumOfSquares result;
    for (int64_t n = begin; n < end; ++n) {
      const auto value = static_cast<double>(x[n]);
      result.sum += value * value;
      result.finite = result.finite && std::isfinite(value);
    }
    return result;
  });
}

template void adam_step<float>(int64_t, float*, const float*, float*, float*, const AdamStep&);
template void adam_step<double>(int64_t, double*, const double*, double*, double*, const AdamStep&);
template SumOfSquares sum_of_squares<float>(int64_t, const float*);
template SumOfSquares sum_of_squares<double>(int64_t, const double*);

}  // namespace lra::kernels::ref
