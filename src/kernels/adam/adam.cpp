#include "kernels/adam/adam.h"

#include "base/error.h"
#include "kernels/choice.h"

namespace lra::kernels {

void check_adam_step(const AdamStep& step) {
  LRA_CHECK_GE(step.step, 0);
  for (const double beta : {step.beta1, step.beta2}) {
    LRA_CHECK_GE(beta, 0.0);
    LRA_CHECK_LT(beta, 1.0);
  }
}

template <typename T>
void adam_step(int64_t count, T* parameters, const T* gradients, T* m, T* v, const AdamStep& step) {
  LRA_RETURN_BEST(T, Op::kAdamStep, adam_step(count, parameters, gradients, m, v, step));
}

template <typename T>
SumOfSquares sum_of_squares(int64_t count, const T* x) {
  LRA_RETURN_BEST(T, Op::kSumOfSquares, sum_of_squares(count, x));
}

template void adam_step<float>(int64_t, float*, const float*, float*, float*, const AdamStep&);
template void adam_step<double>(int64_t, double*, const double*, double*, double*, const AdamStep&);
template SumOfSquares sum_of_squares<float>(int64_t, const float*);
template SumOfSquares sum_of_squares<double>(int64_t, const double*);

}  // namespace lra::kernels
