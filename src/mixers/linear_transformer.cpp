// Linear Transformer (Katharopoulos et al. 2020, arXiv:2006.16236, equations 4 to 7): with phi(x) =
// elu(x) + 1, o_i = phi(q_i) (sum_j phi(k_j)^T v_j) / (phi(q_i) . sum_j phi(k_j) + eps).
//
// Padded keys contribute nothing; the released code lets them (docs/deviations.md, 3).
#include "mixers/all.h"
#include "mixers/layers.h"
#include "ops/feature_attention.h"

namespace lra::mixers {
namespace {

class LinearTransformer : public Mixer {
 public:
  struct Config {
    double eps = 1e-6;
    void fields(auto& f) { f("eps", eps, "added to the denominator", between(0, 1)); }
  };

  LinearTransformer(const Config& config, const MixerShape& shape, Initializer& init)
      : config_(config) {
    qkv_ = register_module("qkv", std::make_shared<HeadProjection>(3, shape.model_dim, shape.heads,
                                                                   shape.head_dim, init));
    output_ = register_module(
        "output", std::make_shared<HeadMerge>(shape.model_dim, shape.heads, shape.head_dim, init));
  }

  at::Tensor forward(const at::Tensor& x_BLD, const MixerContext& context) override {
    return output_->forward(
        ops::packed_feature_attention(qkv_->forward(x_BLD), context.mask_BL,
                                      {.map = kernels::FeatureMap::kElu, .eps = config_.eps}));
  }

 private:
  Config config_;
  std::shared_ptr<HeadProjection> qkv_;
  std::shared_ptr<HeadMerge> output_;
};

}  // namespace

constinit const MixerSpec kLinearTransformer =
    mixer_spec<LinearTransformer>("linear_transformer", "Linear Transformer",
                                  "Katharopoulos et al. 2020, arXiv:2006.16236", "L E", false);

}  // namespace lra::mixers
