// One Adam step with decoupled weight decay over flat arrays, and the global gradient norm.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

struct AdamOptions {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9, weight_decay = 0;
};

// Updates parameters, m and v in place (flat, contiguous, one type). `step` counts the updates
// already made; `grad_scale` multiplies the gradient first. kernels/adam/adam.h has the equations.
// With `clip_norm` > 0, a gradient of which `norm` is larger is scaled by clip_norm / norm, too;
// `norm` is what norm_of() returns, and a device does not wait for the host to read it.
void adam_step(Tensor& parameters, const Tensor& gradients, Tensor& m, Tensor& v,
               const AdamOptions& options, int64_t step, double grad_scale, const Tensor& norm = {},
               double clip_norm = 0);

// L2 norm of a flat array, the same bits at any number of threads; NaN or infinity when an element
// is. float64 [], on the array's device.
Tensor norm_of(const Tensor& flat);
// The same, read: it waits for a device.
inline double gradient_norm(const Tensor& gradients) { return norm_of(gradients).item<double>(); }

// The norm that clipping needs. CheckFailure unless it is one float64.
const Tensor& check_norm(const MaybeTensor& norm);

}  // namespace lra::ops
