#include "kernels/pointwise/pointwise.h"

#include "base/error.h"
#include "base/rng.h"
#include "kernels/choice.h"
#include "kernels/pointwise/pointwise_instances.h"

namespace lra::kernels {

void check_dropout(const Dropout& dropout) {
  LRA_CHECK_GE(dropout.rate, 0.0);
  LRA_CHECK_LT(dropout_threshold(dropout.rate), 65536u);
}

template <typename T>
void gelu_dropout(int64_t count, const T* x, T* y, const Dropout& dropout) {
  LRA_RETURN_BEST(T, Op::kGeluDropout, gelu_dropout(count, x, y, dropout));
}

template <typename T>
void gelu_dropout_backward(int64_t count, const T* x, const T* dy, T* dx, T* y,
                           const Dropout& dropout) {
  LRA_RETURN_BEST(T, Op::kGeluDropoutBackward, gelu_dropout_backward(count, x, dy, dx, y, dropout));
}

template <typename T>
void dropout_add(int64_t count, const T* residual, const T* x, T* y, const Dropout& dropout) {
  LRA_RETURN_BEST(T, Op::kDropoutAdd, dropout_add(count, residual, x, y, dropout));
}

template <typename T>
void apply_dropout(int64_t count, const T* x, T* y, const Dropout& dropout) {
  LRA_RETURN_BEST(T, Op::kApplyDropout, apply_dropout(count, x, y, dropout));
}

LRA_INSTANTIATE_POINTWISE(float)
LRA_INSTANTIATE_POINTWISE(Bf16)
LRA_INSTANTIATE_POINTWISE(double)

}  // namespace lra::kernels
