// Gated linear units (Dauphin et al. 2017, arXiv:1612.08083), y = value * sigmoid(gate), and gates
// by SiLU (Hendrycks and Gimpel 2016, arXiv:1606.08415), y = value * gate * sigmoid(gate).
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

// Rows of `columns` numbers each. Rows of values and gates are `value_stride` and `gate_stride`
// apart, so that both may be parts of longer rows; rows of y and its gradient follow each other.
template <typename T>
struct Gate {
  int64_t rows = 0, columns = 0, value_stride = 0, gate_stride = 0;
  const T *value = nullptr, *gate = nullptr;  // without values they are 1: y = SiLU(gate)
  bool is_silu = false;
};

// Writes y. Relative error against fp64 (gate_test.cpp) at gates up to 12: 1.5e-6, of gradients
// 3e-6.
template <typename T>
void gate_forward(const Gate<T>& p, T* y);
// Gradients of values, not written without any, and of gates; rows are strides apart. The gradient
// of SiLU has a zero near -1.28, around which the error is 2e-7 of the largest slope.
template <typename T>
struct GateGradients {
  int64_t value_stride = 0, gate_stride = 0;
  T *value = nullptr, *gate = nullptr;
};
template <typename T>
void gate_backward(const Gate<T>& p, const T* grad, const GateGradients<T>& to);

// Rows [begin, end) of both.
template <typename T>
struct GateParts {
  void (*forward)(const Gate<T>& p, int64_t begin, int64_t end, T* y);
  void (*backward)(const Gate<T>& p, int64_t begin, int64_t end, const T* grad,
                   const GateGradients<T>& to);
};
LRA_DECLARE_KERNELS(template <typename T> GateParts<T> gate_parts();)

}  // namespace lra::kernels
