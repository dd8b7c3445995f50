// Linear Transformer (Katharopoulos et al. 2020, arXiv:2006.16236, equations 4 to 7): with
// phi(x) = elu(x) + 1, o_i = phi(q_i) (sum_j phi(k_j)^T v_j) / (phi(q_i) . sum_j phi(k_j) + eps).
// With `causal`, the sums are over j <= i (equations 8 and 9): a matrix for each head and token, by
// the scan of ops/scan/matrix_scan.h.
//
// Padded keys contribute nothing; the released code lets them (docs/deviations.md, 3).
#include "mixers/specs/linear_transformer.h"
#include "layers/linear.h"
#include "mixers/sequence_layer.h"
#include "ops/attention/feature_attention.h"

namespace lra::mixers {
namespace {

class LinearTransformer : public SelfAttention {
 public:
  using Config = LinearTransformerConfig;

  LinearTransformer(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : SelfAttention(init, shape), config_(config) {}

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    const ops::FeatureAttentionOptions options{.map = kernels::FeatureMap::kElu,
                                               .eps = config_.eps};
    const auto attend =
        config_.causal ? ops::causal_feature_attention : ops::packed_feature_attention;
    return output_->forward(attend(qkv_->forward(x_BLD), context.mask_BL, options));
  }

 private:
  Config config_;
};

}  // namespace

constinit const LayerMaker kMakeLinearTransformer = make_layer<LinearTransformer>;

}  // namespace lra::mixers
