#include "layers/feed_forward.h"

#include "ops/feed_forward.h"
#include "ops/pointwise/gate.h"
#include "ops/pointwise/pointwise.h"

namespace lra::layers {
namespace {
constexpr double kBiasDeviation = 1e-6;
}

FeedForward::FeedForward(const Initializer& init, int64_t model_dim, int64_t hidden_dim) {
  fc1_ = add<Linear>("fc1", init, hidden_dim, model_dim, LinearWeights::kXavier, kBiasDeviation);
  fc2_ = add<Linear>("fc2", init, model_dim, hidden_dim, LinearWeights::kXavier, kBiasDeviation);
}

at::Tensor FeedForward::forward(const at::Tensor& x, double dropout, uint64_t key) const {
  return ops::feed_forward(x, fc1_->weight, fc1_->bias, fc2_->weight, fc2_->bias, dropout, key);
}

at::Tensor FeedForward::with_residual(const at::Tensor& x, const LayerNorm& norm, double dropout,
                                      uint64_t key, uint64_t residual_key) const {
  return ops::feed_forward(x, fc1_->weight, fc1_->bias, fc2_->weight, fc2_->bias, dropout, key,
                           norm.weight, norm.bias, residual_key);
}

GatedFeedForward::GatedFeedForward(const Initializer& init, int64_t model_dim, int64_t hidden_dim) {
  fc1_ = add<Linear>("fc1", init, 2 * hidden_dim, model_dim);
  fc2_ = add<Linear>("fc2", init, model_dim, hidden_dim);
}

at::Tensor GatedFeedForward::forward(const at::Tensor& x, double dropout, uint64_t key) const {
  return fc2_->forward(ops::dropout(ops::glu(fc1_->forward(x)), dropout, key));
}

at::Tensor tied_dropout(const at::Tensor& x_BLD, double rate, uint64_t key) {
  if (rate == 0) return x_BLD;
  return x_BLD *
         ops::dropout(at::ones({x_BLD.size(0), 1, x_BLD.size(2)}, x_BLD.options()), rate, key);
}

}  // namespace lra::layers
