#include "models/head.h"

#include <algorithm>

#include "ops/precision.h"
#include "ops/product.h"

namespace lra::models {

namespace {

// A product gives back the type of its factors, so a bfloat16 sum is rounded by it: there the
// masked values are summed instead.
at::Tensor masked_sum(const at::Tensor& x_BLD, const at::Tensor& mask_BL, at::ScalarType type) {
  if (x_BLD.scalar_type() == type) return ops::product(mask_BL.unsqueeze(1), x_BLD).squeeze(1);
  return (x_BLD * mask_BL.unsqueeze(2)).sum(1, false, type);
}

}  // namespace

at::Tensor pool(const at::Tensor& x_BLD, const at::Tensor& mask_BL, const std::string& pooling) {
  const at::ScalarType type = ops::wide_type(x_BLD);
  if (pooling != "mean") return x_BLD.select(1, 0).to(type);
  if (!mask_BL.defined()) return x_BLD.mean(1, false, type);
  const at::Tensor sum_BD = masked_sum(x_BLD, mask_BL.to(x_BLD.scalar_type()), type);
  return sum_BD / mask_BL.to(type).sum(1, true).clamp_min(1);
}

at::Tensor pair_features(const at::Tensor& pooled, const std::string& kind) {
  const auto towers = pooled.view({pooled.size(0) / 2, 2, pooled.size(1)}).unbind(1);
  if (kind == "concat") return at::cat({towers[0], towers[1]}, 1);
  return at::cat({towers[0], towers[1], towers[0] * towers[1], towers[0] - towers[1]}, 1);
}

ClassifierHead::ClassifierHead(const ModelConfig& config, int64_t input_dim, int64_t num_classes,
                               mixers::Initializer& init) {
  const auto layer = [&](int64_t out, int64_t in) {
    return std::make_shared<mixers::Linear>(init.lecun(out, in), init.zeros({out}));
  };
  if (config.classifier != "linear") {
    hidden_ = register_module("hidden", layer(config.mlp_dim, input_dim));
    input_dim = config.mlp_dim;
  }
  if (config.classifier == "mlp3") {
    const int64_t half = std::max<int64_t>(1, config.mlp_dim / 2);
    second_hidden_ = register_module("second_hidden", layer(half, input_dim));
    input_dim = half;
  }
  output_ = register_module("output", layer(num_classes, input_dim));
}

at::Tensor ClassifierHead::forward(at::Tensor x_BD) const {
  if (hidden_) x_BD = at::relu(hidden_->forward(x_BD));
  if (second_hidden_) x_BD = at::relu(second_hidden_->forward(x_BD));
  return output_->forward(x_BD);
}

}  // namespace lra::models
