// The last stage of a state-space block: a nonlinearity, and a gate that mixes channels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/context.h"
#include "layers/linear.h"
#include "layers/settings.h"

namespace lra::layers {

// y [B, L, D] -> [B, L, D], position by position, with g = dropout(gelu(y)) at the rate of the
// block (Context::dropout):
//   "glu"        a * sigmoid(b), [a, b] = W g + v    (S4, Gu et al. 2022, arXiv:2111.00396)
//   "half_glu1"  g * sigmoid(W g + v)                (S5, Smith et al. 2023, arXiv:2208.04933, the
//   "half_glu2"  y * sigmoid(W g + v)                 names of its code)
//   "linear"     W g + v
//   "none"       g, without parameters
class GatedOutput : public Layer {
 public:
  // `kind` is one of gated_outputs(). Weights are Xavier uniform, biases 0.
  GatedOutput(const Initializer& init, int64_t model_dim, const std::string& kind);
  at::Tensor forward(const at::Tensor& y_BLD, const Context& context) const;

 private:
  // Keeps the key of this dropout apart from those of others in the layer.
  static constexpr uint32_t kDropoutPlace = 0x6A7E;

  std::string kind_;
  std::shared_ptr<Linear> linear_;  // null for "none"
};

}  // namespace lra::layers
