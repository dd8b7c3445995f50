// Functions of one number that gates and decays of recurrences are made with.
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

enum class Activation {
  kSigmoid,     // 1 / (1 + exp(-x))
  kClosed,      // 1 - sigmoid(x), without the cancellation of that difference
  kSoftplus,    // log(1 + exp(x)), without overflow; its slope is sigmoid(x)
  kPositive,    // x + 1/2 for x >= 0, else sigmoid(x): candidates of minGRU (Feng et al. 2024,
                // arXiv:2410.01201, appendix B)
  kExp,         // exp(x)
  kFreshShare,  // sqrt(1 - exp(2 x)) for x <= 0, the input's share beside a decay exp(x) that
                // keeps a state's variance; at least sqrt(kLeastFreshShare), where its slope is 0
};
inline constexpr double kLeastFreshShare = 2.5e-7;  // so that slopes are at most 2,000

// y = f(x) for `count` numbers. Relative error against fp64 (activation_test.cpp) at |x| up to 12:
// 1.5e-6, of gradients 3e-6, and 2^-8 in bfloat16.
template <typename T>
void activation_forward(Activation f, int64_t count, const T* x, T* y);
// grad_x = grad f'(x); grad_x may be grad.
template <typename T>
void activation_backward(Activation f, int64_t count, const T* x, const T* grad, T* grad_x);

template <typename T>
struct ActivationParts {
  void (*forward)(Activation f, int64_t count, const T* x, T* y);
  void (*backward)(Activation f, int64_t count, const T* x, const T* grad, T* grad_x);
};
LRA_DECLARE_KERNELS(template <typename T> ActivationParts<T> activation_parts();)

}  // namespace lra::kernels
