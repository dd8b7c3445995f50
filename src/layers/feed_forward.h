// The part of a block that treats each position on its own.
#pragma once

#include <memory>

#include "layers/linear.h"
#include "layers/norms.h"

namespace lra::layers {

// fc2(dropout(gelu(fc1(x)))), weights Xavier uniform, biases N(0, 1e-6).
class FeedForward : public Layer {
 public:
  FeedForward(const Initializer& init, int64_t model_dim, int64_t hidden_dim);
  // x [B, L, D].
  at::Tensor forward(const at::Tensor& x, double dropout, uint64_t key) const;
  // x + dropout(forward(norm(x))) in one operator; a key for each dropout.
  at::Tensor with_residual(const at::Tensor& x, const LayerNorm& norm, double dropout, uint64_t key,
                           uint64_t residual_key) const;

 private:
  std::shared_ptr<Linear> fc1_, fc2_;
};

// fc2(dropout(a * sigmoid(b))), [a, b] = fc1(x): a gated linear unit (Dauphin et al. 2017,
// arXiv:1612.08083) where the feed-forward network has GELU.
class GatedFeedForward : public Layer {
 public:
  GatedFeedForward(const Initializer& init, int64_t model_dim, int64_t hidden_dim);
  at::Tensor forward(const at::Tensor& x, double dropout, uint64_t key) const;

 private:
  std::shared_ptr<Linear> fc1_, fc2_;
};

// x * dropout as ops::dropout does, but with one draw for all positions of a sequence: a channel
// is dropped along the whole length (Gal and Ghahramani 2016, arXiv:1512.05287). x [B, L, D].
at::Tensor tied_dropout(const at::Tensor& x_BLD, double rate, uint64_t key);

}  // namespace lra::layers
