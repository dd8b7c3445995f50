// Exact softmax attention (Vaswani et al. 2017, section 3.2): o_i = sum_j softmax_j(q_i k_j /
// sqrt(E)) v_j, with dropout on the weights. Memory is linear in L: the scores exist one tile at a
// time.
//
// Padded queries give zero; the released code lets them attend uniformly (docs/deviations.md, 3).
#include "mixers/all.h"
#include "mixers/layers.h"
#include "ops/attention.h"

namespace lra::mixers {
namespace {

class Transformer : public Mixer {
 public:
  struct Config {
    void fields(auto&) {}
  };

  Transformer(const Config&, const MixerShape& shape, Initializer& init) {
    qkv_ = register_module("qkv", std::make_shared<HeadProjection>(3, shape.model_dim, shape.heads,
                                                                   shape.head_dim, init));
    output_ = register_module(
        "output", std::make_shared<HeadMerge>(shape.model_dim, shape.heads, shape.head_dim, init));
  }

  at::Tensor forward(const at::Tensor& x_BLD, const MixerContext& context) override {
    return output_->forward(ops::packed_attention(qkv_->forward(x_BLD), {},
                                                  {context.mask_BL, context.mask_BL},
                                                  {context.attention_dropout, context.key}));
  }

 private:
  std::shared_ptr<HeadProjection> qkv_;
  std::shared_ptr<HeadMerge> output_;
};

}  // namespace

constinit const MixerSpec kTransformer = mixer_spec<Transformer>(
    "transformer", "Transformer", "Vaswani et al. 2017, arXiv:1706.03762", "L^2", true);

}  // namespace lra::mixers
