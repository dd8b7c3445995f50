// Zero-order hold of conjugate pairs of poles lambda in channels with their own steps dt (Gu et al.
// 2022, arXiv:2206.11893, equation 5):
//
//   a = exp(dt lambda),  held c = 2 c (a - 1) / lambda,
//
// where the 2 counts both poles of a pair. Computed in double, which resolves 1 - |a| of long
// memories. Kernels are for GPUs only; elsewhere the operator is composed (ops/scan/held_pairs.h).
#pragma once

#include <cstdint>

namespace lra::kernels {

struct HeldPairs {
  int64_t directions = 0, channels = 0, pairs = 0;
  bool shared = false;               // all channels have the same poles
  bool log_rate = false;             // real parts are -exp(real)
  bool softplus = false;             // dt = log(1 + exp(raw_dt)) instead of exp(raw_dt)
  const float* real = nullptr;       // [1 or channels, pairs]
  const float* frequency = nullptr;  // imaginary parts, the same
  const float* raw_dt = nullptr;     // [channels]
  const float* c = nullptr;          // [directions, channels, pairs, 2]
};

struct HeldPairsBackward {
  HeldPairs problem;
  const float* grad_a = nullptr;  // [2, pairs, channels]
  const float* grad_c = nullptr;  // of the held c, [directions, 2, pairs, channels]
  // Shares of each pair and channel in the gradients of real, frequency and raw_dt, one array after
  // another, [3, channels, pairs].
  float* shares = nullptr;
  float* grad_own_c = nullptr;  // of c, as it is
};

}  // namespace lra::kernels
