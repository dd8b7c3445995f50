// The pre-LN encoder that every model shares; only the mixer inside its blocks differs.
#pragma once

#include <memory>
#include <vector>

#include "mixers/layers.h"
#include "mixers/mixer.h"
#include "models/model_config.h"
#include "models/step_random.h"
#include "ops/libtorch.h"

namespace lra::models {

// fc2(dropout(gelu(fc1(norm(x))))), weights Xavier uniform, biases N(0, 1e-6).
class FeedForward : public torch::nn::Module {
 public:
  FeedForward(int64_t model_dim, int64_t hidden_dim, mixers::Initializer& init);
  at::Tensor forward(const at::Tensor& x, const mixers::LayerNorm& norm, double dropout,
                     uint64_t key) const;

 private:
  std::shared_ptr<mixers::Linear> fc1_, fc2_;
};

// Which positions hold tokens: all, where nothing is defined.
struct Padding {
  at::Tensor mask_BL = {};    // uint8, where the model computes
  at::Tensor lengths_B = {};  // mixers/mixer.h
};

// x += dropout(mixer(norm1(x))); x += dropout(mlp(norm2(x))).
class EncoderBlock : public torch::nn::Module {
 public:
  EncoderBlock(const ModelConfig& config, const mixers::MixerSpec& spec,
               const ConfigTable& mixer_config, const mixers::MixerShape& shape,
               mixers::Initializer& init);
  at::Tensor forward(const at::Tensor& x_BLD, const Padding& padding,
                     const StepRandom& random) const;

 private:
  double dropout_, attention_dropout_;
  uint32_t layer_;
  std::shared_ptr<mixers::LayerNorm> norm1_, norm2_;
  std::shared_ptr<mixers::Mixer> mixer_;
  std::shared_ptr<FeedForward> mlp_;
};

// The blocks, then one layer norm.
class Encoder : public torch::nn::Module {
 public:
  // With `recompute` a block keeps only its input for the backward pass, and runs again there.
  Encoder(const ModelConfig& config, const mixers::MixerSpec& spec, const ConfigTable& mixer_config,
          int64_t max_positions, mixers::Initializer& init, bool recompute = false);
  at::Tensor forward(at::Tensor x_BLD, const Padding& padding, const StepRandom& random) const;

 private:
  bool recompute_;
  std::vector<std::shared_ptr<EncoderBlock>> blocks_;
  std::shared_ptr<mixers::LayerNorm> norm_;
};

}  // namespace lra::models
