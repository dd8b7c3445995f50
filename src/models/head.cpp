#include "models/head.h"

#include <algorithm>

namespace lra::models {

ClassifierHead::ClassifierHead(const layers::Initializer& init, const ModelConfig& config,
                               int64_t input_dim, int64_t num_classes) {
  const auto layer = [&](const char* name, int64_t out) {
    return add<layers::Linear>(name, init, out, input_dim, layers::LinearWeights::kLecun);
  };
  if (config.classifier != "linear") {
    hidden_ = layer("hidden", config.mlp_dim);
    input_dim = config.mlp_dim;
  }
  if (config.classifier == "mlp3") {
    const int64_t half = std::max<int64_t>(1, config.mlp_dim / 2);
    second_hidden_ = layer("second_hidden", half);
    input_dim = half;
  }
  output_ = layer("output", num_classes);
}

at::Tensor ClassifierHead::forward(at::Tensor x_BD) const {
  if (hidden_) x_BD = at::relu(hidden_->forward(x_BD));
  if (second_hidden_) x_BD = at::relu(second_hidden_->forward(x_BD));
  return output_->forward(x_BD);
}

}  // namespace lra::models
