// Dropout, residual plus dropout, and GELU plus dropout as operators.
//
// No mask is stored: it is a function of (key, element) and is computed again in the backward pass
// (base/rng.h). Rate 0 is the plain function. Keys differ per place and step
// (models/step_random.h).
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// y = dropout(x); any shape. Of a part of an array, first_row rows of kernels::kDropoutRowLength
// elements lie before it, here and below.
Tensor dropout(const Tensor& x, double rate, uint64_t key, int64_t first_row = 0);

// y = residual + dropout(x); both of one shape.
Tensor dropout_add(const Tensor& x, const Tensor& residual, double rate, uint64_t key,
                   int64_t first_row = 0);

// y = dropout(gelu_tanh(x)).
Tensor gelu_dropout(const Tensor& x, double rate, uint64_t key, int64_t first_row = 0);
// y `again`, else empty, and grad of x, given grad of y, in one pass; without autograd. If that
// pass also sums grad of x over rows, `sums` [columns] are these, float32; else it is empty.
struct GeluDropoutGrads {
  Tensor y, x, sums;
};
GeluDropoutGrads gelu_dropout_backward(const Tensor& x, const Tensor& grad, double rate,
                                       uint64_t key, int64_t first_row = 0, bool again = true);

}  // namespace lra::ops
