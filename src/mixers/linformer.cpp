// Linformer (Wang et al. 2020, arXiv:2006.04768, equation 7): keys and values are projected along
// the length, K' = P^T K, V' = P^T V with P [max_length, rank], and o_i = softmax(q_i K'^T /
// sqrt(E)) V'.
//
// One P per layer serves keys, values and all heads (Tay et al. 2021, appendix B.1). Padded rows
// are set to zero before they are projected; the released code lets padding take part, with rank 16
// (docs/deviations.md, 8).
#include "mixers/specs/linformer.h"
#include "mixers/sequence_layer.h"
#include "ops/attention/attention.h"
#include "ops/precision.h"
#include "ops/product.h"

namespace lra::mixers {
namespace {

class Linformer : public SequenceLayer {
 public:
  using Config = LinformerConfig;

  Linformer(const layers::Initializer& init, const Config& config, const LayerShape& shape) {
    query_ = add<layers::HeadProjection>("query", init, 1, shape.model_dim, shape.attention,
                                         layers::LastPart::kQueries);
    key_value_ =
        add<layers::HeadProjection>("key_value", init, 2, shape.model_dim, shape.attention);
    projection_ = add_xavier("projection", init, shape.max_length, config.rank);
    output_ = add<layers::HeadMerge>("output", init, shape.model_dim, shape.attention);
  }

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    const int64_t batch = x_BLD.size(0), length = x_BLD.size(1), rank = projection_.size(1);
    LRA_CHECK_LE(length, projection_.size(0));
    at::Tensor stream_BLD = x_BLD;
    const at::Tensor q_BLHE = query_->of_stream(stream_BLD).squeeze(2);
    const at::Tensor kv_BL2HE = key_value_->forward(stream_BLD);
    at::Tensor projected = projected_rows(kv_BL2HE.flatten(2), context.mask_BL);
    projected = projected.view({batch, rank, 2, kv_BL2HE.size(3), kv_BL2HE.size(4)});
    return output_->forward(ops::attention(q_BLHE, projected.select(2, 0), projected.select(2, 1),
                                           {}, {.keys = {}, .queries = context.mask_BL},
                                           {context.attention_dropout, context.key}));
  }

 private:
  // [B, L, N] -> [B, R, N]
  at::Tensor projected_rows(at::Tensor rows_BLN, const at::Tensor& mask_BL) const {
    if (mask_BL.defined()) rows_BLN = rows_BLN * mask_BL.unsqueeze(-1).to(rows_BLN.scalar_type());
    const at::Tensor p_RL = ops::beside(projection_.narrow(0, 0, rows_BLN.size(1)), rows_BLN).t();
    return ops::product(p_RL.unsqueeze(0).expand({rows_BLN.size(0), -1, -1}), rows_BLN);
  }

  std::shared_ptr<layers::HeadProjection> query_, key_value_;
  at::Tensor projection_;
  std::shared_ptr<layers::HeadMerge> output_;
};

}  // namespace

constinit const LayerMaker kMakeLinformer = make_layer<Linformer>;

}  // namespace lra::mixers
