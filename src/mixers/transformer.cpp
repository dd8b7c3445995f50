// Exact softmax attention (Vaswani et al. 2017, section 3.2): o_i = sum_j softmax_j(q_i k_j /
// sqrt(E)) v_j, with dropout on the weights. Memory is linear in L: the scores exist one tile at a
// time.
//
// With `causal`, a token sees no later one. With `rotary`, queries and keys are turned by their
// position first (layers/positions.h).
//
// Padded queries give zero; the released code lets them attend uniformly (docs/deviations.md, 3).
#include "mixers/specs/transformer.h"
#include "layers/positions.h"
#include "mixers/sequence_layer.h"
#include "ops/attention/attention.h"
#include "ops/pointwise/rotary.h"

namespace lra::mixers {
namespace {

class Transformer : public SelfAttention {
 public:
  using Config = TransformerConfig;

  Transformer(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : SelfAttention(init, shape), rotary_(config.rotary) {
    if (config.causal) pattern_.right = 0;
    if (rotary_ && shape.attention.head_dim % 2 != 0) {
      throw Error({.where = "mixer.rotary",
                   .what = "heads of odd width " + std::to_string(shape.attention.head_dim),
                   .expected = "an even width, because channels are rotated in pairs",
                   .advice = "set model.heads or model.qkv_dim"});
    }
  }

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    if (!rotary_) return attended(x_BLD, pattern_, context.mask_BL, context);
    const auto parts = qkv_->forward(x_BLD).unbind(2);
    const at::Tensor table = layers::rotary_table(parts[0]);
    return output_->forward(ops::attention(
        ops::rotary(parts[0], table), ops::rotary(parts[1], table), parts[2], pattern_,
        {context.mask_BL, context.mask_BL}, {context.attention_dropout, context.key}));
  }

 private:
  bool rotary_;
  ops::AttentionPattern pattern_;
};

}  // namespace

constinit const LayerMaker kMakeTransformer = make_layer<Transformer>;

}  // namespace lra::mixers
