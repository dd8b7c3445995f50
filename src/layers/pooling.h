// Reduces the vectors of a sequence to one.
#pragma once

#include <string>

#include "ops/libtorch.h"

namespace lra::layers {

// "cls" and "first": position 0. "mean": over valid positions only (an example without any gives
// 0). [B, L, D] -> [B, D], float32 for bfloat16.
at::Tensor pool(const at::Tensor& x_BLD, const at::Tensor& mask_BL, const std::string& pooling);

// Features of a pair of documents for the classifier (Tay et al. 2021, A.1.3): rows 2b and 2b + 1
// of [2B, D] are the two towers of example b. "nli": [x1, x2, x1 * x2, x1 - x2], [B, 4 D];
// "concat": [x1, x2], [B, 2 D].
at::Tensor pair_features(const at::Tensor& pooled, const std::string& kind);

}  // namespace lra::layers
