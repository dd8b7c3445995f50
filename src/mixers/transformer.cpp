// Exact softmax attention (Vaswani et al. 2017, section 3.2): o_i = sum_j softmax_j(q_i k_j /
// sqrt(E)) v_j, with dropout on the weights. Memory is linear in L: the scores exist one tile at a
// time.
//
// Padded queries give zero; the released code lets them attend uniformly (docs/deviations.md, 3).
#include "mixers/all.h"
#include "ops/attention.h"

namespace lra::mixers {
namespace {

class Transformer : public SequenceLayer {
 public:
  struct Config {
    void fields(auto&) {}
  };

  Transformer(const layers::Initializer& init, const Config&, const LayerShape& shape) {
    qkv_ = add<layers::HeadProjection>("qkv", init, 3, shape.model_dim, shape.attention);
    output_ = add<layers::HeadMerge>("output", init, shape.model_dim, shape.attention);
  }

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    return output_->forward(ops::packed_attention(qkv_->forward(x_BLD), {},
                                                  {context.mask_BL, context.mask_BL},
                                                  {context.attention_dropout, context.key}));
  }

 private:
  std::shared_ptr<layers::HeadProjection> qkv_;
  std::shared_ptr<layers::HeadMerge> output_;
};

}  // namespace

constinit const LayerSpec kTransformer =
    layer_spec<Transformer>({.name = "transformer",
                             .title = "Transformer",
                             .paper = "Vaswani et al. 2017, arXiv:1706.03762",
                             .cost = "L^2",
                             .facts = {.attention_weights = true, .attention_dropout = true}});

}  // namespace lra::mixers
