// Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464, section 3): heads whose state is a memory of
// keys and values that decays and is corrected, the gated delta rule of ops/scan/matrix_scan.h,
//
//   q, k = l2norm(SiLU(conv(W u))),  v = SiLU(conv(W_v u)),  beta = sigmoid(W_b u),
//   S~ = exp(-exp(a_log) softplus(W_a u + dt_bias)) S,   S = S~ + beta k (v - S~^T k)^T,
//   result = W_out (norm(S^T q / sqrt(K)) SiLU(W_g u)),
//
// K = key_dim and V = value_dim for each head, with a depthwise convolution of the last
// `conv_width` tokens and a root mean square norm over each head. Initially exp(a_log) is uniform
// in (0, a_max], and the steps softplus(dt_bias) are log-uniform in [dt_min, dt_max].
//
// `decay = false` and `gate = false` make it DeltaNet (Yang et al. 2024, arXiv:2406.06484).
// `negative_eigenvalues` doubles beta, so that a write can turn its direction around (Grazzi et al.
// 2024, arXiv:2411.12537). `bidirectional` lets the second half of the heads run from the end, with
// a convolution that looks at later tokens (recurrent_heads.h). Differences from the authors' code:
// docs/deviations.md.
#include "mixers/specs/gated_deltanet.h"
#include "mixers/recurrent/recurrent_heads.h"
#include "mixers/sequence_layer.h"
#include "ops/convolution_silu.h"
#include "ops/linear.h"
#include "ops/pointwise/activation.h"
#include "ops/pointwise/gate.h"
#include "ops/pointwise/row_norm.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr double kKeyNormEps = 1e-6;

class GatedDeltaNet : public SequenceLayer {
 public:
  using Config = GatedDeltaNetConfig;

  GatedDeltaNet(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config) {
    const int64_t dim = shape.model_dim, heads = config.num_heads;
    check_halves("mixer.num_heads", heads, config.bidirectional);
    if (config.key_dim == 0) config_.key_dim = std::max<int64_t>(1, 3 * dim / (4 * heads));
    if (config.value_dim == 0) config_.value_dim = 2 * config_.key_dim;
    const int64_t values = heads * config_.value_dim, mixed = 2 * heads * config_.key_dim + values;
    qkv_ = add_xavier("qkv_weight", init, mixed, dim);
    conv_ = add_normal("conv_weight", init, {mixed, config.conv_width},
                       layers::inverse_root(config.conv_width));
    beta_ = add_xavier("beta_weight", init, heads, dim);
    if (config.decay) {
      decay_ = add_xavier("decay_weight", init, heads, dim);
      dt_bias_ = register_in_group(
          "ssm", "dt_bias", step_bias(init.of("dt_bias"), heads, config.dt_min, config.dt_max));
      a_log_ = register_in_group("ssm", "a_log",
                                 uniform_rate_logs(init.of("a_log"), heads, 0, config.a_max));
    }
    if (config.gate) gate_ = add_xavier("gate_weight", init, values, dim);
    norm_ = register_parameter("norm_weight", init.ones({config_.value_dim}));
    out_ = add_xavier("out_weight", init, dim, values);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const int64_t heads = config_.num_heads, keys = heads * config_.key_dim,
                  values = heads * config_.value_dim;
    const std::vector<int64_t> widths = {keys, keys, values};
    const DirectedKernel conv = directed_kernel(conv_, widths, config_.bidirectional, places_);
    Tensor stream_BLD = u_BLD;
    const auto mixed = ops::convolution_silu(
                           ops::linear_of_stream(stream_BLD, qkv_), context.mask_BL, conv.kernel_EK,
                           at::zeros({conv_.size(0)}, conv_.options()), conv.future)
                           .split_with_sizes(widths, 2);
    const auto of_heads = [&](const Tensor& t) { return t.unflatten(2, {heads, -1}); };
    const auto type = ops::wide_type(u_BLD);
    const Tensor beta = ops::sigmoid(ops::linear_of_stream(stream_BLD, beta_).to(type));
    const Tensor log_decay =
        config_.decay ? decaying_steps(ops::linear_of_stream(stream_BLD, decay_), dt_bias_, a_log_)
                            .log_decay_BLH1
                      : at::zeros_like(beta).unsqueeze(3);
    const Tensor o =
        ops::matrix_scan({.q_BLGK = rows_of_length(layers::inverse_root(config_.key_dim),
                                                   of_heads(mixed[0]), kKeyNormEps),
                          .k_BLGK = rows_of_length(1, of_heads(mixed[1]), kKeyNormEps),
                          .v_BLHV = of_heads(mixed[2]),
                          .log_decay_BLHK = log_decay,
                          .beta_BLH = config_.negative_eigenvalues ? 2 * beta : beta,
                          .reversed_heads = config_.bidirectional ? heads / 2 : 0,
                          .mask_BL = context.mask_BL});
    Tensor y = ops::row_norm(o, norm_, kHeadNormEps).flatten(2);
    if (config_.gate) y = ops::silu(ops::linear(stream_BLD, gate_), y);
    return ops::linear(y, out_);
  }

 private:
  Config config_;
  DirectedPlaces places_;
  Tensor qkv_, conv_;         // [H (2 K + V), D], [H (2 K + V), conv_width]
  Tensor beta_, decay_;       // [H, D]
  Tensor dt_bias_, a_log_;    // [H]
  Tensor gate_, norm_, out_;  // [H V, D], [V], [D, H V]
};

}  // namespace

constinit const LayerMaker kMakeGatedDeltaNet = make_layer<GatedDeltaNet>;

}  // namespace lra::mixers
