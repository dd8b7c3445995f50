// The diagonal recurrence that a damped moving average is (Mega, Ma et al. 2023, arXiv:2209.10655,
// section 3.1).
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// Each state of a channel has p = sigmoid(delta), q = 1 - p sigmoid(alpha) and c = p beta eta /
// sqrt(N). All are [K, N, D] with K = 1 or 2 directions but omega [D], float32 or float64.
struct DampedAverage {
  Tensor delta, alpha, beta, eta, omega_D;
};
// Arguments of ops::diagonal_scan for sum_n c_n q_n^l x[t - l] + omega x[t], with two directions
// also that over later tokens. Its second direction reads only tokens after x[t]: its coefficients
// are c q, and lag 0 is part of skip. Each direction has its own states, which the other does not
// read.
struct DampedPoles {
  Tensor a_1ND, c_K1ND, skip_D;  // N: K times the states of a direction
};
DampedPoles damped_poles(const DampedAverage& of);

// The composed version, in float64. Only GPUs have another.
std::tuple<Tensor, Tensor, Tensor> composed_damped_poles(const Tensor& delta, const Tensor& alpha,
                                                         const Tensor& beta, const Tensor& eta,
                                                         const Tensor& omega);

}  // namespace lra::ops
