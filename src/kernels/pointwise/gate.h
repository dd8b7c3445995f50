// Gated linear units (Dauphin et al. 2017, arXiv:1612.08083): y = value * sigmoid(gate).
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

// Rows of `columns` numbers each. Rows of values and gates, and of their gradients, are
// `value_stride` and `gate_stride` apart, so that both may be halves of longer rows; rows of y
// follow each other.
template <typename T>
struct Gate {
  int64_t rows = 0, columns = 0, value_stride = 0, gate_stride = 0;
  const T *value = nullptr, *gate = nullptr;
};

// Writes y. Relative error against fp64 (gate_test.cpp) at gates up to 12: 1.5e-6, of gradients
// 3e-6.
template <typename T>
void gate_forward(const Gate<T>& p, T* y);
// Writes grad_value = grad * sigmoid(gate) and grad_gate = grad * value * sigmoid'(gate).
template <typename T>
void gate_backward(const Gate<T>& p, const T* grad, T* grad_value, T* grad_gate);

// Rows [begin, end) of both.
template <typename T>
struct GateParts {
  void (*forward)(const Gate<T>& p, int64_t begin, int64_t end, T* y);
  void (*backward)(const Gate<T>& p, int64_t begin, int64_t end, const T* grad, T* grad_value,
                   T* grad_gate);
};
namespace ref {
template <typename T>
GateParts<T> gate_parts();
}
LRA_DECLARE_SIMD(template <typename T> GateParts<T> gate_parts();)

}  // namespace lra::kernels
