#include "models/block.h"

#include "ops/pointwise/pointwise.h"

namespace lra::models {

EncoderBlock::EncoderBlock(const layers::Initializer& init, const ModelConfig& config,
                           const mixers::LayerSpec& spec, const ConfigTable& mixer_config,
                           const mixers::LayerShape& shape)
    : norm_in_front_(config.norm_placement == "pre"),
      residual_(config.residual),
      tied_dropout_(config.dropout_kind == "tied"),
      dropout_(config.dropout),
      attention_dropout_(config.attention_dropout),
      layer_(static_cast<uint32_t>(shape.layer)) {
  const auto norm = [&](const char* name) {
    return register_module(name, layers::make_norm(config.norm, init.of(name), config.embed_dim));
  };
  norm1_ = norm("norm1");
  mixer_ = register_module("mixer", spec.make(init.of("mixer"), mixer_config, shape));
  if (config.feed_forward == "none") return;
  norm2_ = norm("norm2");
  if (config.feed_forward == "glu") {
    glu_ = add<layers::GatedFeedForward>("mlp", init, config.embed_dim, config.mlp_dim);
  } else {
    mlp_ = add<layers::FeedForward>("mlp", init, config.embed_dim, config.mlp_dim);
    const bool adds = norm_in_front_ && residual_ && !tied_dropout_;
    if (adds) fused_norm_ = dynamic_cast<const layers::LayerNorm*>(norm2_.get());
  }
}

layers::Context EncoderBlock::context_of(const Padding& padding, const StepRandom& random,
                                         uint32_t group) const {
  return {.mask_BL = padding.mask_BL,
          .attention_dropout = random.rate(attention_dropout_),
          .key = random.group_key(layer_, kMixer, group),
          .step_key = random.step_key(layer_, kMixer),
          .training = random.training,
          .step = random.step,
          .lengths_B = padding.lengths_B,
          // Running statistics are noted once for each group; there are fewer than 2^16 of both.
          .part = random.part | group << 16,
          .dropout = random.rate(dropout_),
          .tied_dropout = tied_dropout_};
}

at::Tensor EncoderBlock::mixed(const at::Tensor& x_BLD, const at::Tensor& norm_BLD,
                               const Layout& layout, const StepRandom& random) const {
  const std::vector<at::Tensor> streams =
      layout.groups.empty() ? std::vector<at::Tensor>{x_BLD} : layout.split(x_BLD);
  return layout.map(norm_BLD, [&](const at::Tensor& rows_BLD, const RowGroup& group, uint32_t g) {
    layers::Context context = context_of(group.padding, random, g);
    if (norm_in_front_) context.stream_BLD = streams[g];
    return mixer_->forward(rows_BLD, context);
  });
}

at::Tensor EncoderBlock::tied_dropout(const at::Tensor& y_BLD, const Layout& layout, double rate,
                                      uint64_t key) const {
  return layout.map(y_BLD, [&](const at::Tensor& rows_BLD, const RowGroup&, uint32_t number) {
    return layers::tied_dropout(rows_BLD, rate, StepRandom::of_group(key, number));
  });
}

at::Tensor EncoderBlock::joined(const at::Tensor& y, const at::Tensor& x, const Layout& layout,
                                const StepRandom& random, Place place) const {
  const double rate = random.rate(dropout_);
  const uint64_t key = random.key(layer_, place);
  if (residual_ && !tied_dropout_) return ops::dropout_add(y, x, rate, key);
  const at::Tensor dropped =
      tied_dropout_ ? tied_dropout(y, layout, rate, key) : ops::dropout(y, rate, key);
  return residual_ ? x + dropped : dropped;
}

at::Tensor EncoderBlock::fed_forward(const at::Tensor& input, const StepRandom& random) const {
  const double rate = random.rate(dropout_);
  const uint64_t key = random.key(layer_, kMlpHidden);
  return mlp_ ? mlp_->forward(input, rate, key) : glu_->forward(input, rate, key);
}

at::Tensor EncoderBlock::mixer_input(const at::Tensor& x_BLD) const {
  return norm_in_front_ ? norm1_->forward(x_BLD, {}) : x_BLD;
}

at::Tensor EncoderBlock::forward(const at::Tensor& x_BLD, const Layout& layout,
                                 const StepRandom& random) const {
  const layers::Context context = context_of(layout.padding, random);
  const auto in_front = [&](layers::Norm& norm, const at::Tensor& x) {
    return norm_in_front_ ? norm.of_stream(x, context) : layers::Norm::OfStream{x, x};
  };
  const auto [input, stream] = in_front(*norm1_, x_BLD);
  at::Tensor x = joined(mixed(stream, input, layout, random), stream, layout, random, kMixerOutput);
  if (!norm_in_front_) x = norm1_->forward(x, context);
  if (!norm2_) return x;
  if (fused_norm_) {
    return mlp_->with_residual(x, *fused_norm_, random.rate(dropout_),
                               random.key(layer_, kMlpHidden), random.key(layer_, kMlpOutput));
  }
  const auto [hidden, sum] = in_front(*norm2_, x);
  x = joined(fed_forward(hidden, random), sum, layout, random, kMlpOutput);
  return norm_in_front_ ? x : norm2_->forward(x, context);
}

}  // namespace lra::models
