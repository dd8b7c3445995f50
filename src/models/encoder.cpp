#include "models/encoder.h"

#include "models/recompute.h"

namespace lra::models {

Encoder::Encoder(const layers::Initializer& init, const ModelConfig& config,
                 const mixers::LayerSpec& spec, const ConfigTable& mixer_config,
                 int64_t max_positions, bool recompute)
    : recompute_(recompute) {
  if (config.qkv_dim % config.heads != 0) {
    throw Error({.where = "model.heads",
                 .what = std::to_string(config.heads) + " heads do not divide qkv_dim " +
                         std::to_string(config.qkv_dim),
                 .advice = "set model.heads or model.qkv_dim"});
  }
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const mixers::LayerShape shape{
        .model_dim = config.embed_dim,
        .attention = {.heads = config.heads, .head_dim = config.qkv_dim / config.heads},
        .max_length = max_positions,
        .layer = layer};
    const std::string number = std::to_string(layer);
    blocks_.push_back(register_module(
        "layers_" + number, std::make_shared<EncoderBlock>(init.of("layers." + number), config,
                                                           spec, mixer_config, shape)));
  }
  if (config.norm_placement == "pre") {
    norm_ =
        register_module("norm", layers::make_norm(config.norm, init.of("norm"), config.embed_dim));
  }
}

at::Tensor Encoder::forward(at::Tensor x_BLD, const Layout& layout,
                            const StepRandom& random) const {
  for (const auto& block : blocks_) {
    const auto run = [=](const at::Tensor& x) { return block->forward(x, layout, random); };
    x_BLD = recompute_ ? recomputed(x_BLD, run) : run(x_BLD);
  }
  if (!norm_) return x_BLD;
  return norm_->forward(
      x_BLD, {.mask_BL = layout.padding.mask_BL, .training = random.training, .part = random.part});
}

}  // namespace lra::models
