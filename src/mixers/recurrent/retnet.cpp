// Multi-scale retention, the layer of RetNet (Sun et al. 2023, arXiv:2307.08621, section 2): linear
// attention whose head h forgets by the fixed factor 1 - 2^(-5 - h) at each token,
//
//   S_t = (1 - 2^(-5 - h)) S_{t-1} + k v^T,   result = W_out (norm(S^T q / sqrt(K)) SiLU(W_g u)),
//
// with rotary queries and keys and a root mean square norm over each head, by the scan of
// ops/scan/matrix_scan.h. Values are twice as wide as keys. `bidirectional` lets the second half of
// the heads run from the end, with the decays of the first half (recurrent_heads.h). Differences
// from the authors' code: docs/deviations.md.
#include "mixers/specs/retnet.h"
#include "layers/positions.h"
#include "mixers/recurrent/recurrent_heads.h"
#include "mixers/sequence_layer.h"
#include "ops/linear.h"
#include "ops/pointwise/gate.h"
#include "ops/pointwise/rotary.h"
#include "ops/pointwise/row_norm.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan.h"

namespace lra::mixers {
namespace {

using at::Tensor;

class RetNet : public SequenceLayer {
 public:
  using Config = RetNetConfig;

  RetNet(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config) {
    const int64_t dim = shape.model_dim, heads = config.num_heads;
    check_halves("mixer.num_heads", heads, config.bidirectional);
    if (config.key_dim == 0) config_.key_dim = std::max<int64_t>(2, dim / heads / 2 * 2);
    if (config.value_dim == 0) config_.value_dim = 2 * config_.key_dim;
    if (config_.key_dim % 2 != 0) {
      throw Error({.where = "mixer.key_dim",
                   .what = std::to_string(config_.key_dim) + " channels cannot be turned in pairs",
                   .expected = "an even number"});
    }
    const int64_t keys = heads * config_.key_dim, values = heads * config_.value_dim;
    qkv_ = add_xavier("qkv_weight", init, 2 * keys + values, dim);
    gate_ = add_xavier("gate_weight", init, values, dim);
    norm_ = register_parameter("norm_weight", init.ones({config_.value_dim}));
    out_ = add_xavier("out_weight", init, dim, values);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const int64_t heads = config_.num_heads, keys = heads * config_.key_dim;
    Tensor stream_BLD = u_BLD;
    const auto qkv = ops::linear_of_stream(stream_BLD, qkv_)
                         .split_with_sizes({keys, keys, heads * config_.value_dim}, 2);
    const auto of_heads = [&](const Tensor& t) { return t.unflatten(2, {heads, -1}); };
    const Tensor q = of_heads(qkv[0]), table = layers::rotary_table(q);
    const Tensor o = ops::matrix_scan(
        {.q_BLGK = ops::rotary(q, table / std::sqrt(double(config_.key_dim))),
         .k_BLGK = ops::rotary(of_heads(qkv[1]), table),
         .v_BLHV = of_heads(qkv[2]),
         .log_decay_BLHK = log_decays(u_BLD).expand({u_BLD.size(0), u_BLD.size(1), -1, -1}),
         .reversed_heads = config_.bidirectional ? heads / 2 : 0,
         .mask_BL = context.mask_BL});
    const Tensor normed = ops::row_norm(o, norm_, kHeadNormEps).flatten(2);
    return ops::linear(ops::silu(ops::linear(stream_BLD, gate_), normed), out_);
  }

 private:
  // [1, 1, H, 1]
  Tensor log_decays(const Tensor& u_BLD) const {
    const int64_t heads = config_.num_heads, different = config_.bidirectional ? heads / 2 : heads;
    const Tensor head = at::arange(heads, at::kDouble).remainder(different);
    const Tensor logs = (1 - at::exp2(-5 - head)).log();
    return logs.to(u_BLD.device(), ops::wide_type(u_BLD)).view({1, 1, heads, 1});
  }

  Config config_;
  Tensor qkv_, gate_, norm_, out_;  // [H (2 K + V), D], [H V, D], [V], [D, H V]
};

}  // namespace

constinit const LayerMaker kMakeRetNet = make_layer<RetNet>;

}  // namespace lra::mixers
