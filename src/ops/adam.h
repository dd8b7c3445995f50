// One Adam step with decoupled weight decay over flat arrays, and the global gradient norm.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

struct AdamOptions {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9, weight_decay = 0;
};

// Updates parameters, m and v in place (flat, contiguous, one type). `step` counts the updates
// already made; `grad_scale` multiplies the gradient first. kernels/adam/adam.h has the equations.
void adam_step(Tensor& parameters, const Tensor& gradients, Tensor& m, Tensor& v,
               const AdamOptions& options, int64_t step, double grad_scale);

// L2 norm of a flat array, the same bits at any number of threads; NaN or infinity when an element
// is.
double gradient_norm(const Tensor& gradients);

}  // namespace lra::ops
