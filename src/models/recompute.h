// A function whose inner values are recomputed in the backward pass instead of stored (Chen et al.
// 2016, arXiv:1604.06174).
#pragma once

#include <functional>

#include "ops/libtorch.h"

namespace lra::models {

// Returns f(x), keeping only x for the backward pass. `f` must give the same bits each time it is
// called; gradients reach x and the parameters that `f` uses, as they do without this.
// Differentiable once. Outside of autograd it is f(x).
at::Tensor recomputed(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f);

}  // namespace lra::models
