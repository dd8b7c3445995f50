// Rows of a table by token, for activations in bfloat16.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// table [rows, D] float32, tokens [..., ] integers -> [..., D] bfloat16. Its gradient is float32:
// the library would add those of thousands of equal tokens up in bfloat16.
Tensor rounded_rows(const Tensor& table, const Tensor& tokens);

// Row r is the sum of the rows of grad [N, D] whose token (of tokens [N]) is r: [rows, D], float32
// for bfloat16; without autograd.
Tensor sum_by_token(const Tensor& grad, const Tensor& tokens, int64_t rows);

}  // namespace lra::ops
