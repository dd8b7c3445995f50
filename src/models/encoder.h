// The encoder that every model shares; only the sequence layer inside its blocks differs.
#pragma once

#include <memory>
#include <vector>

#include "models/block.h"

namespace lra::models {

// The blocks, then one norm in the pre-norm placement.
class Encoder : public layers::Layer {
 public:
  // `recompute`: a block keeps only its input for the backward pass, and runs again there.
  Encoder(const layers::Initializer& init, const ModelConfig& config, const mixers::LayerSpec& spec,
          const ConfigTable& mixer_config, int64_t max_positions, bool recompute = false);
  // x [B, L, D], or [1, T, D] in groups.
  at::Tensor forward(at::Tensor x_BLD, const Layout& layout, const StepRandom& random) const;

  const std::vector<std::shared_ptr<EncoderBlock>>& blocks() const { return blocks_; }

 private:
  bool recompute_;
  std::vector<std::shared_ptr<EncoderBlock>> blocks_;
  std::shared_ptr<layers::Norm> norm_;  // may be none
};

}  // namespace lra::models
