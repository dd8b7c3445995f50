// One fused pass of Adam with decoupled weight decay, and the norm that gradient clipping needs.
//
// Kingma and Ba (arXiv:1412.6980, algorithm 1) with the decay of Loshchilov and Hutter
// (arXiv:1711.05101) multiplied by the learning rate.
#pragma once

#include <cstdint>

#include "kernels/choice.h"

namespace lra::kernels {

struct AdamStep {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;
  int64_t step = 0;       // steps done before this one; bias correction uses beta^(step + 1)
  double grad_scale = 1;  // multiplies the gradient first: clipping, accumulation
};

// Fails a check if `step.step` is negative or a beta is outside [0, 1).
void check_adam_step(const AdamStep& step);

// Updates each of `count` elements, with g = grad_scale * gradient and all values read before any
// is written:
//   m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2
//   p <- p - learning_rate * m_hat / (sqrt(v_hat) + epsilon) - learning_rate * weight_decay * p
// The arrays must not overlap. Error of the float kernels against the double reference, over the
// first few steps: 1e-6 times the largest of 1 and |p| for p, and of 1 and |g| for the moments
// (adam_test.cpp).
template <typename T>
void adam_step(int64_t count, T* parameters, const T* gradients, T* m, T* v, const AdamStep& step);

struct SumOfSquares {
  double sum = 0;      // infinite or NaN when `finite` is false
  bool finite = true;  // no element is infinite or NaN
};

// Sum of x^2 in double precision and whether all elements are finite, in one pass. The order of
// additions depends only on `count`, so the bits are the same at any number of threads.
template <typename T>
SumOfSquares sum_of_squares(int64_t count, const T* x);

namespace ref {
template <typename T>
void adam_step(int64_t count, T* parameters, const T* gradients, T* m, T* v, const AdamStep& step);
template <typename T>
SumOfSquares sum_of_squares(int64_t count, const T* x);
}  // namespace ref

LRA_DECLARE_SIMD(void adam_step(int64_t count, float* parameters, const float* gradients, float* m,
                                float* v, const AdamStep& step);
                 SumOfSquares sum_of_squares(int64_t count, const float* x);)

}  // namespace lra::kernels
