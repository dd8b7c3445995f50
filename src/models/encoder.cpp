#include "models/encoder.h"

#include "models/recompute.h"
#include "ops/feed_forward.h"
#include "ops/pointwise.h"

namespace lra::models {
namespace {
constexpr double kMlpBiasDeviation = 1e-6;
// Places of randomness inside a block.
enum Place : uint32_t { kMixer = 0, kMixerOutput = 1, kMlpHidden = 2, kMlpOutput = 3 };
}  // namespace

FeedForward::FeedForward(int64_t model_dim, int64_t hidden_dim, mixers::Initializer& init) {
  const auto layer = [&](int64_t out, int64_t in) {
    at::Tensor weight = init.xavier(out, in);
    return std::make_shared<mixers::Linear>(weight, init.normal({out}, kMlpBiasDeviation));
  };
  fc1_ = register_module("fc1", layer(hidden_dim, model_dim));
  fc2_ = register_module("fc2", layer(model_dim, hidden_dim));
}

at::Tensor FeedForward::forward(const at::Tensor& x, const mixers::LayerNorm& norm, double dropout,
                                uint64_t key) const {
  return ops::feed_forward(x, fc1_->weight, fc1_->bias, fc2_->weight, fc2_->bias, dropout, key,
                           norm.weight, norm.bias);
}

EncoderBlock::EncoderBlock(const ModelConfig& config, const mixers::MixerSpec& spec,
                           const ConfigTable& mixer_config, const mixers::MixerShape& shape,
                           mixers::Initializer& init)
    : dropout_(config.dropout),
      attention_dropout_(config.attention_dropout),
      layer_(static_cast<uint32_t>(shape.layer)) {
  norm1_ = register_module("norm1", std::make_shared<mixers::LayerNorm>(config.embed_dim, init));
  mixer_ = register_module("mixer", spec.make(mixer_config, shape, init));
  norm2_ = register_module("norm2", std::make_shared<mixers::LayerNorm>(config.embed_dim, init));
  mlp_ =
      register_module("mlp", std::make_shared<FeedForward>(config.embed_dim, config.mlp_dim, init));
}

at::Tensor EncoderBlock::forward(const at::Tensor& x_BLD, const Padding& padding,
                                 const StepRandom& random) const {
  const double rate = random.rate(dropout_);
  const mixers::MixerContext context{.mask_BL = padding.mask_BL,
                                     .attention_dropout = random.rate(attention_dropout_),
                                     .key = random.key(layer_, kMixer),
                                     .step_key = random.step_key(layer_, kMixer),
                                     .training = random.training,
                                     .step = random.step,
                                     .lengths_B = padding.lengths_B};
  const at::Tensor mixed = mixer_->forward(norm1_->forward(x_BLD), context);
  const at::Tensor x = ops::dropout_add(mixed, x_BLD, rate, random.key(layer_, kMixerOutput));
  const at::Tensor hidden = mlp_->forward(x, *norm2_, rate, random.key(layer_, kMlpHidden));
  return ops::dropout_add(hidden, x, rate, random.key(layer_, kMlpOutput));
}

Encoder::Encoder(const ModelConfig& config, const mixers::MixerSpec& spec,
                 const ConfigTable& mixer_config, int64_t max_positions, mixers::Initializer& init,
                 bool recompute)
    : recompute_(recompute) {
  if (config.qkv_dim % config.heads != 0) {
    throw Error({.where = "model.heads",
                 .what = std::to_string(config.heads) + " heads do not divide qkv_dim " +
                         std::to_string(config.qkv_dim),
                 .expected = "",
                 .advice = "set model.heads or model.qkv_dim"});
  }
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const mixers::MixerShape shape{.model_dim = config.embed_dim,
                                   .heads = config.heads,
                                   .head_dim = config.qkv_dim / config.heads,
                                   .max_length = max_positions,
                                   .layer = layer};
    blocks_.push_back(
        register_module("layers_" + std::to_string(layer),
                        std::make_shared<EncoderBlock>(config, spec, mixer_config, shape, init)));
  }
  norm_ = register_module("norm", std::make_shared<mixers::LayerNorm>(config.embed_dim, init));
}

at::Tensor Encoder::forward(at::Tensor x_BLD, const Padding& padding,
                            const StepRandom& random) const {
  for (const auto& block : blocks_) {
    const auto run = [=](const at::Tensor& x) { return block->forward(x, padding, random); };
    x_BLD = recompute_ ? recomputed(x_BLD, run) : run(x_BLD);
  }
  return norm_->forward(x_BLD);
}

}  // namespace lra::models
