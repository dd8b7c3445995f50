// Attention whose weights have no low-rank form, without an L x L array: a few rows of weights at a
// time, recomputed in the backward pass.
#pragma once

#include <functional>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/libtorch.h"

namespace lra::mixers {

// Output rows first, first + 1, ... along axis 1 from the same rows of `rows` and all of `whole`.
// Called with gradients in the backward pass; must give the same numbers each time.
using RowFunction = std::function<at::Tensor(const std::vector<at::Tensor>& rows,
                                             const std::vector<at::Tensor>& whole, int64_t first)>;

// f over axis 1 of all `rows`, `chunk` rows at a time (at least one). Differentiable in all tensors
// once; memory beyond inputs, output and their gradients is that of one chunk.
at::Tensor in_row_chunks(const std::vector<at::Tensor>& rows, const std::vector<at::Tensor>& whole,
                         int64_t chunk, const RowFunction& f);

// Factors that attention dropout applies to the weights [B, H, rows, columns] of queries first,
// first + 1, ...: weight (i, j) of plane b * H + h as in kernels/attention/attention.h.
at::Tensor weight_dropout(at::IntArrayRef shape_BHLS, int64_t first,
                          const ops::AttentionDropout& dropout, const at::TensorOptions& options);

}  // namespace lra::mixers
