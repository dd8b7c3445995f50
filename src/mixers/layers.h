// The small things that mixers and models share. Weights are [out, in] as in PyTorch.
#pragma once

#include "base/rng.h"
#include "mixers/initializer.h"
#include "mixers/mixer.h"
#include "ops/attention.h"
#include "ops/layer_norm.h"
#include "ops/libtorch.h"
#include "ops/linear.h"

namespace lra::mixers {

// y = x W^T (+ b).
class Linear : public torch::nn::Module {
 public:
  Linear(at::Tensor initial_weight, at::Tensor initial_bias) {
    weight = register_parameter("weight", std::move(initial_weight));
    if (initial_bias.defined()) bias = register_parameter("bias", std::move(initial_bias));
  }
  at::Tensor forward(const at::Tensor& x) const { return ops::linear(x, weight, bias); }
  at::Tensor weight, bias;
};

// Layer normalisation over the last axis, eps 1e-6.
class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm(int64_t dim, Initializer& init) {
    weight = register_parameter("weight", init.ones({dim}));
    bias = register_parameter("bias", init.zeros({dim}));
  }
  at::Tensor forward(const at::Tensor& x) const { return ops::layer_norm(x, weight, bias, 1e-6); }
  at::Tensor weight, bias;
};

// What the last part of a projection is: the values that a mixer mixes, or queries.
enum class LastPart { kValues, kQueries };

// `count` projections D -> H * E of one input as one product, without bias: weight [count * H * E,
// D], each part Xavier-initialised on its own. forward gives [B, L, count, H, E].
class HeadProjection : public torch::nn::Module {
 public:
  HeadProjection(int64_t count, int64_t model_dim, int64_t heads, int64_t head_dim,
                 Initializer& init, LastPart last = LastPart::kValues)
      : last_part(last), count_(count), heads_(heads), head_dim_(head_dim) {
    std::vector<at::Tensor> parts;
    for (int64_t i = 0; i < count; ++i) parts.push_back(init.xavier(heads * head_dim, model_dim));
    weight = register_parameter("weight", at::cat(parts));
  }
  at::Tensor forward(const at::Tensor& x) const {
    return ops::linear(x, weight).view({x.size(0), x.size(1), count_, heads_, head_dim_});
  }
  int64_t num_heads() const { return heads_; }
  at::Tensor weight;
  const LastPart last_part;

 private:
  int64_t count_, heads_, head_dim_;
};

// [B, L, H, E] -> [B, L, D], without bias.
class HeadMerge : public torch::nn::Module {
 public:
  HeadMerge(int64_t model_dim, int64_t heads, int64_t head_dim, Initializer& init) {
    weight = register_parameter("weight", init.xavier(model_dim, heads * head_dim));
  }
  at::Tensor forward(const at::Tensor& x_BLHE) const {
    return ops::linear(x_BLHE.flatten(2), weight);
  }
  at::Tensor weight;
};

// Of one of several attentions of a layer, under a key of its own.
inline ops::AttentionDropout attention_dropout(const MixerContext& context, uint32_t part) {
  return {context.attention_dropout, derive_key(context.key, RandomUse::kDropout, part)};
}

}  // namespace lra::mixers
