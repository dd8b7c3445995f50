// State spaces in continuous time as recurrences.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// Conjugate pairs of poles lambda in D channels, each with its own step dt: s' = lambda s + x, y =
// 2 Re sum_n c_n s_n, as the recurrence s[l] = a s[l - 1] + x[l], y[l] = Re sum_n c'_n s_n[l]
// that zero-order hold makes of it, a = exp(dt lambda), c' = 2 c (a - 1) / lambda. Real and
// imaginary parts in the 2; all float32 or all float64, held in float64, where 1 - |a| of long
// memories has digits.
struct Poles {
  at::Tensor real, frequency;  // of lambda, [1 or D, N]
  at::Tensor raw_dt_D;
  bool log_rate = false;  // the real parts are -exp(real)
  bool softplus = false;  // dt = log(1 + exp(raw_dt)) instead of exp(raw_dt)
};
struct HeldPairs {
  at::Tensor a_2ND, c_K2ND;
};
HeldPairs hold_pairs(const Poles& poles, const at::Tensor& c_KDN2);

void check_hold_pairs(const at::Tensor& real, const at::Tensor& frequency, const at::Tensor& raw_dt,
                      const at::Tensor& c);

}  // namespace lra::ops
