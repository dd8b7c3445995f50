// Floating-point operations required by a model's definition: its matrix products and attention
// scores, as its operators are called. Recomputation and wasted work in kernels are not counted,
// nor are element-wise passes.
#pragma once

#include <cstdint>

#include "models/classifier.h"

namespace lra::analysis {

// FLOPs of one forward pass; a multiply-add counts as two. A product [M, K] x [K, N] is 2 M N K,
// attention 2 (E + V) for every visible pair of query and key (operator lra::attention_pairs). The
// backward pass takes twice as many: each product has two gradients.
int64_t forward_flops(const models::SequenceClassifier& model, const models::ModelInput& input);

}  // namespace lra::analysis
