// From token vectors to class scores.
#pragma once

#include "mixers/layers.h"
#include "models/model_config.h"
#include "ops/libtorch.h"

namespace lra::models {

// "cls" and "first": position 0. "mean": over valid positions only (an example without any gives
// 0). [B, L, D] -> [B, D], float32 for bfloat16.
at::Tensor pool(const at::Tensor& x_BLD, const at::Tensor& mask_BL, const std::string& pooling);

// What a pair of documents is to the classifier (Tay et al. 2021, A.1.3): rows 2b and 2b + 1 of
// [2B, D] are the two towers of example b. "nli": [x1, x2, x1 * x2, x1 - x2], [B, 4 D]; "concat":
// [x1, x2], [B, 2 D].
at::Tensor pair_features(const at::Tensor& pooled, const std::string& kind);

// mlp: Dense(mlp_dim) -> ReLU -> Dense(classes); mlp3: Dense(mlp_dim / 2) -> ReLU before the last
// as well; linear: Dense(classes). LeCun normal weights, zero biases.
class ClassifierHead : public torch::nn::Module {
 public:
  ClassifierHead(const ModelConfig& config, int64_t input_dim, int64_t num_classes,
                 mixers::Initializer& init);
  at::Tensor forward(at::Tensor x_BD) const;

 private:
  std::shared_ptr<mixers::Linear> hidden_, second_hidden_, output_;
};

}  // namespace lra::models
