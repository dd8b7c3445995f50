// Elementwise passes of an encoder: GELU with dropout, residual plus dropout, and dropout.
//
// Each is one pass over memory; the dropout mask is recomputed from the counter generator instead
// of stored. Element n uses dropout_value(key, plane 0, row n / 1024, column n % 1024) of
// base/rng.h, so masks do not depend on threads, and rate 0 is the plain function.
//
// gelu_tanh(x) = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel,
// arXiv:1606.08415, section 2). Error of the float kernels against the double reference:
// 1e-6 * max(1, |x|) for values, 2e-6 for the derivative (pointwise_test.cpp).
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

struct Dropout {
  double rate = 0;  // in [0, 1)
  uint64_t key = 0;
  int64_t first_row = 0;  // rows of kDropoutRowLength elements that lie before the array
};

// Fails a check unless the rate is in [0, 1) and still below 1 in the 16 bits of a decision. (In a
// file without an instruction set: a template of a failed check compiled with one could end up in
// programs that run without it.)
void check_dropout(const Dropout& dropout);

inline constexpr int64_t kDropoutRowLength = 1024;

// All arrays have `count` contiguous elements; an output may be the same array as an input, but
// must not overlap one in part. T is float, double or Bf16; double always runs the reference.

// y = dropout(gelu_tanh(x))
template <typename T>
void gelu_dropout(int64_t count, const T* x, T* y, const Dropout& dropout);
// dx = gelu_tanh'(x) * dropout'(dy); and y again, the very bits of gelu_dropout, unless it is null.
template <typename T>
void gelu_dropout_backward(int64_t count, const T* x, const T* dy, T* dx, T* y,
                           const Dropout& dropout);
// y = residual + dropout(x)
template <typename T>
void dropout_add(int64_t count, const T* residual, const T* x, T* y, const Dropout& dropout);
// y = dropout(x); with x = dy it is also the backward pass of both dropout and dropout_add.
template <typename T>
void apply_dropout(int64_t count, const T* x, T* y, const Dropout& dropout);

LRA_DECLARE_KERNELS(template <typename T>
                    void gelu_dropout(int64_t count, const T* x, T* y, const Dropout& dropout);
                    template <typename T>
                    void gelu_dropout_backward(int64_t count, const T* x, const T* dy, T* dx, T* y,
                                               const Dropout& dropout);
                    template <typename T>
                    void dropout_add(int64_t count, const T* residual, const T* x, T* y,
                                     const Dropout& dropout);
                    template <typename T>
                    void apply_dropout(int64_t count, const T* x, T* y, const Dropout& dropout);)

}  // namespace lra::kernels
