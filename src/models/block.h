// One block of an encoder, from its settings: norm, sequence layer, feed-forward layer, residuals.
#pragma once

#include <memory>

#include "layers/feed_forward.h"
#include "layers/norms.h"
#include "mixers/sequence_layer.h"
#include "models/layout.h"
#include "models/model_config.h"
#include "models/step_random.h"

namespace lra::models {

// An encoder block. Norms in front: x += dropout(mixer(norm1(x))); x += dropout(mlp(norm2(x))).
// Norms behind: x = norm1(x + dropout(mixer(x))); x = norm2(x + dropout(mlp(x))). The paper's
// models have layer norms in front and two layers with GELU.
class EncoderBlock : public layers::Layer {
 public:
  EncoderBlock(const layers::Initializer& init, const ModelConfig& config,
               const mixers::LayerSpec& spec, const ConfigTable& mixer_config,
               const mixers::LayerShape& shape);
  // x [B, L, D], or [1, T, D] in groups: norms, dropout and feed-forward layer run once over all
  // positions, the sequence layer once for each group.
  at::Tensor forward(const at::Tensor& x_BLD, const Layout& layout, const StepRandom& random) const;

  // Input of the sequence layer when the input of this block is x: for analyses.
  at::Tensor mixer_input(const at::Tensor& x_BLD) const;
  mixers::SequenceLayer& mixer() const { return *mixer_; }
  // Puts another sequence layer in the place of the block's, whose parameters stay the model's.
  // Returns the one that was there.
  std::shared_ptr<mixers::SequenceLayer> exchange_mixer(
      std::shared_ptr<mixers::SequenceLayer> other) {
    return std::exchange(mixer_, std::move(other));
  }

 private:
  // Places of randomness inside a block.
  enum Place : uint32_t { kMixer = 0, kMixerOutput = 1, kMlpHidden = 2, kMlpOutput = 3 };

  layers::Context context_of(const Padding& padding, const StepRandom& random,
                             uint32_t group = 0) const;
  // The sequence layer of `norm_BLD`, the norm in front of it or the stream x itself.
  at::Tensor mixed(const at::Tensor& x_BLD, const at::Tensor& norm_BLD, const Layout& layout,
                   const StepRandom& random) const;
  // One decision per row and channel.
  at::Tensor tied_dropout(const at::Tensor& y_BLD, const Layout& layout, double rate,
                          uint64_t key) const;
  // y, dropped out, for adding to the stream x.
  at::Tensor joined(const at::Tensor& y, const at::Tensor& x, const Layout& layout,
                    const StepRandom& random, Place place) const;
  at::Tensor fed_forward(const at::Tensor& input, const StepRandom& random) const;

  bool norm_in_front_, residual_, tied_dropout_;
  double dropout_, attention_dropout_;
  uint32_t layer_;
  std::shared_ptr<layers::Norm> norm1_, norm2_;  // norm2_: none without a feed-forward layer
  // norm2_, where mlp_ computes it and the residual as well
  const layers::LayerNorm* fused_norm_ = nullptr;
  std::shared_ptr<mixers::SequenceLayer> mixer_;
  std::shared_ptr<layers::FeedForward> mlp_;  // one of these two, or none
  std::shared_ptr<layers::GatedFeedForward> glu_;
};

}  // namespace lra::models
