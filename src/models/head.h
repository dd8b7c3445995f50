// From token vectors to class scores.
#pragma once

#include <torch/torch.h>

#include "mixers/layers.h"
#include "models/model_config.h"

namespace lra::models {

// CLS: position 0. Mean: over valid positions only (an example without any gives 0). [B, L, D] ->
// [B, D].
at::Tensor pool(const at::Tensor& x_BLD, const at::Tensor& mask_BL, const std::string& pooling);

// mlp: Dense(mlp_dim) -> ReLU -> Dense(classes); linear: Dense(classes). LeCun normal weights, zero
// biases.
class ClassifierHead : public torch::nn::Module {
 public:
  ClassifierHead(const ModelConfig& config, int64_t input_dim, int64_t num_classes,
                 mixers::Initializer& init);
  at::Tensor forward(at::Tensor x_BD) const;

 private:
  std::shared_ptr<mixers::Linear> hidden_, output_;
};

}  // namespace lra::models
