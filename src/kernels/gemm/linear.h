// Many rows times one matrix in bfloat16, on tiles (simd/tiles.h): a linear layer, and the gradient
// of its input. Processors without tiles have no such kernel; the CPU library multiplies there.
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

// y = x w + bias, or gelu_tanh of that (pointwise.h). Sums are float and rounded once.
struct LinearRows {
  int64_t rows = 0, depth = 0, columns = 0;
  const Bf16* x = nullptr;  // [rows, depth], rows x_row apart
  int64_t x_row = 0;
  const Bf16* w = nullptr;  // w(k, n) is w[k * w_depth + n * w_column]; one of the two is 1
  int64_t w_depth = 0, w_column = 0;
  const float* bias = nullptr;  // [columns]; null: zeros
  bool gelu = false;
  Bf16* y = nullptr;  // [rows, columns], rows y_row apart; overlaps no input
  int64_t y_row = 0;
};

// May be called if has_tiles(). Before the rounding of y the error is (depth / 32 + 20) 2^-24 of
// the sum of absolute values; numbers below 2^-126 count as 0. The bits of a row depend on nothing
// but the row, w and bias.
void linear_rows(const LinearRows& problem);

LRA_DECLARE_TILES(void linear_rows(const LinearRows& problem))

}  // namespace lra::kernels
