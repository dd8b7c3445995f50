// Gated linear attention (Yang et al. 2023, arXiv:2312.06635, section 4): linear attention whose
// state forgets by gates of its own for each key channel,
//
//   a = sigmoid(W_2 W_1 u + b)^(1 / temperature) in (0, 1)^K,   S_t = diag(a) S_{t-1} + k v^T,
//   result = W_out (norm(S^T q / sqrt(K)) SiLU(W_g u)),
//
// with W_1 of `rank` rows and a root mean square norm over each head, by the scan of
// ops/scan/matrix_scan.h. Keys are half as wide as the model, values as wide. `decay_bias` is the
// initial b: with 0, a state forgets half in 16 tokens. `bidirectional` lets the second half of the
// heads run from the end (recurrent_heads.h). Differences from the authors' code:
// docs/deviations.md.
#include "mixers/specs/gla.h"
#include "mixers/recurrent/recurrent_heads.h"
#include "mixers/sequence_layer.h"
#include "ops/linear.h"
#include "ops/pointwise/activation.h"
#include "ops/pointwise/gate.h"
#include "ops/pointwise/row_norm.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan.h"

namespace lra::mixers {
namespace {

using at::Tensor;

class Gla : public SequenceLayer {
 public:
  using Config = GlaConfig;

  Gla(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config) {
    const int64_t dim = shape.model_dim, heads = config.num_heads;
    check_halves("mixer.num_heads", heads, config.bidirectional);
    const auto or_default = [](int64_t& width, int64_t otherwise) {
      if (width == 0) width = std::max<int64_t>(1, otherwise);
    };
    or_default(config_.key_dim, dim / (2 * heads));
    or_default(config_.value_dim, dim / heads);
    const int64_t keys = heads * config_.key_dim, values = heads * config_.value_dim;
    qkv_ = add_xavier("qkv_weight", init, 2 * keys + values, dim);
    decay_in_ = add_xavier("decay_in_weight", init, config.rank, dim);
    decay_out_ = add_xavier("decay_out_weight", init, keys, config.rank);
    decay_bias_ = register_parameter("decay_bias", init.ones({keys}) * config.decay_bias);
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
    const Tensor decay =
        ops::linear(ops::linear_of_stream(stream_BLD, decay_in_), decay_out_, decay_bias_);
    const Tensor log_decay = ops::softplus(-decay.to(ops::wide_type(decay))) / -config_.temperature;
    const Tensor o =
        ops::matrix_scan({.q_BLGK = of_heads(qkv[0]) / std::sqrt(double(config_.key_dim)),
                          .k_BLGK = of_heads(qkv[1]),
                          .v_BLHV = of_heads(qkv[2]),
                          .log_decay_BLHK = of_heads(log_decay),
                          .reversed_heads = config_.bidirectional ? heads / 2 : 0,
                          .mask_BL = context.mask_BL});
    const Tensor normed = ops::row_norm(o, norm_, kHeadNormEps).flatten(2);
    return ops::linear(ops::silu(ops::linear(stream_BLD, gate_), normed), out_);
  }

 private:
  Config config_;
  Tensor qkv_;                                // [H (2 K + V), D]
  Tensor decay_in_, decay_out_, decay_bias_;  // [rank, D], [H K, rank], [H K]
  Tensor gate_, norm_, out_;                  // [H V, D], [V], [D, H V]
};

}  // namespace

constinit const LayerMaker kMakeGla = make_layer<Gla>;

}  // namespace lra::mixers
