// Maps pooled vectors to class scores.
#pragma once

#include "layers/linear.h"
#include "models/model_config.h"

namespace lra::models {

// mlp: Dense(mlp_dim) -> ReLU -> Dense(classes); mlp3: Dense(mlp_dim / 2) -> ReLU before the last
// as well; linear: Dense(classes). LeCun normal weights, zero biases.
class ClassifierHead : public layers::Layer {
 public:
  ClassifierHead(const layers::Initializer& init, const ModelConfig& config, int64_t input_dim,
                 int64_t num_classes);
  at::Tensor forward(at::Tensor x_BD) const;

 private:
  std::shared_ptr<layers::Linear> hidden_, second_hidden_, output_;
};

}  // namespace lra::models
