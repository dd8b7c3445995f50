// A sequence layer: the map [B, L, D] -> [B, L, D] that moves information along the sequence. It is
// the one thing that differs between the models of the benchmark; everything around it is written
// once in models/.
//
// Adding one: a .cpp here, its settings and facts in specs/, a TOML under configs/models, its
// definition in tests/parity/layers, two lines in all.h (CONTRIBUTING.md). Help, sweeps,
// benchmarks, the report and the tests pick it up from the table.
//
// Goals of the room `mixers`: each mechanism as published, in one file, with its real sub-quadratic
// computation. Non-goals: variants without a paper, tricks of training that belong to a preset.
#pragma once

#include "layers/context.h"
#include "layers/layer.h"
#include "layers/projections.h"
#include "mixers/all.h"

namespace lra::mixers {

// Padded positions of the result may hold anything finite; they never influence valid positions. A
// row's result depends neither on how far it is padded nor on the other rows: a batch comes in
// groups of rows of like length, one call each (models/layout.h).
class SequenceLayer : public layers::Layer {
 public:
  virtual at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) = 0;
};

// One whose heads attend to its own input.
class SelfAttention : public SequenceLayer {
 protected:
  SelfAttention(const layers::Initializer& init, const LayerShape& shape)
      : qkv_(add<layers::HeadProjection>("qkv", init, 3, shape.model_dim, shape.attention)),
        output_(add<layers::HeadMerge>("output", init, shape.model_dim, shape.attention)) {}

  // Softmax attention under `pattern`.
  at::Tensor attended(const at::Tensor& x_BLD, const ops::AttentionPattern& pattern,
                      const at::Tensor& mask_BL, const layers::Context& context) const {
    return output_->forward(ops::packed_attention(qkv_->forward(x_BLD), pattern, {mask_BL, mask_BL},
                                                  {context.attention_dropout, context.key}));
  }

  std::shared_ptr<layers::HeadProjection> qkv_;
  std::shared_ptr<layers::HeadMerge> output_;
};

// A function that LayerSpec::make() calls: kMakeTransformer, ...
using LayerMaker = std::shared_ptr<SequenceLayer> (*)(const layers::Initializer& init,
                                                      const ConfigTable& config,
                                                      const LayerShape& shape);
#define LRA_DECLARE_MAKER(Name) extern const LayerMaker kMake##Name;
LRA_ALL_MIXERS(LRA_DECLARE_MAKER)
extern const LayerMaker kMakePythonLayer;

// The maker of a class with a nested Config.
template <typename M>
std::shared_ptr<SequenceLayer> make_layer(const layers::Initializer& init,
                                          const ConfigTable& config, const LayerShape& shape) {
  return std::make_shared<M>(init, read_config<typename M::Config>(config, "mixer"), shape);
}

}  // namespace lra::mixers
