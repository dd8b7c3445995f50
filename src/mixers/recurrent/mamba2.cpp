// Mamba-2 (Dao and Gu 2024, arXiv:2405.21060, section 7): a gated block around a state space whose
// heads of P = head_channels channels (in the paper 64) each have one decay, and states [N, P].
// With E = expand D inner channels, H = E / P heads and groups that share B and C, one for each
// direction,
//
//   [z, x, b, c, dt] = W_in u,   (x, b, c) = SiLU(conv(x, b, c) + bias),   dt = softplus(dt +
//   bias), S_t = exp(-exp(a_log) dt) S_{t-1} + dt b x^T,   y = S_t^T c + skip x, result = W_out
//   norm(y SiLU(z)),
//
// with a depthwise convolution of the last `conv_width` tokens, the root mean square norm over each
// group's channels, after the gate, and the scan of ops/scan/matrix_scan.h. Initially exp(a_log) is
// uniform in [a_min, a_max], and steps are log-uniform in [dt_min, dt_max].
//
// `bidirectional` lets the second half of the heads run from the end, with a convolution that looks
// at later tokens, and b and c of their own (recurrent_heads.h). Differences from the authors'
// code: docs/deviations.md.
#include "mixers/specs/mamba2.h"
#include "mixers/recurrent/recurrent_heads.h"
#include "mixers/sequence_layer.h"
#include "ops/convolution_silu.h"
#include "ops/linear.h"
#include "ops/pointwise/gate.h"
#include "ops/pointwise/row_norm.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan.h"

namespace lra::mixers {
namespace {

using at::Tensor;

class Mamba2 : public SequenceLayer {
 public:
  using Config = Mamba2Config;

  Mamba2(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config),
        inner_(config.expand * shape.model_dim),
        head_dim_(config.head_channels > 0 ? config.head_channels
                                           : std::max<int64_t>(1, inner_ / 4)),
        heads_(inner_ / head_dim_),
        groups_(config.bidirectional ? 2 : 1) {
    check_divides("mixer.head_channels", head_dim_, inner_);
    check_halves("mixer.head_channels", heads_, config.bidirectional);
    check_order("mixer.a_min", config.a_min, "mixer.a_max", config.a_max);
    const int64_t dim = shape.model_dim, mixed = inner_ + 2 * groups_ * config.states;
    in_ = add_normal("in_weight", init, {inner_ + mixed + heads_, dim}, layers::inverse_root(dim));
    conv_ = add_normal("conv_weight", init, {mixed, config.conv_width},
                       layers::inverse_root(config.conv_width));
    conv_bias_ = register_parameter("conv_bias", init.zeros({mixed}));
    dt_bias_ = register_in_group(
        "ssm", "dt_bias", step_bias(init.of("dt_bias"), heads_, config.dt_min, config.dt_max));
    a_log_ = register_in_group(
        "ssm", "a_log", uniform_rate_logs(init.of("a_log"), heads_, config.a_min, config.a_max));
    skip_ = register_in_group("ssm", "skip", init.ones({heads_}));
    norm_ = register_parameter("norm_weight", init.ones({inner_}));
    out_ = add_normal("out_weight", init, {dim, inner_}, layers::inverse_root(inner_));
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const int64_t of_states = groups_ * config_.states;
    const auto parts =
        ops::linear(u_BLD, in_).split_with_sizes({inner_, inner_ + 2 * of_states, heads_}, 2);
    const std::vector<int64_t> widths = {inner_, of_states, of_states};
    const DirectedKernel conv = directed_kernel(conv_, widths, config_.bidirectional, places_);
    const auto mixed =
        ops::convolution_silu(parts[1], context.mask_BL, conv.kernel_EK, conv_bias_, conv.future)
            .split_with_sizes(widths, 2);
    const Tensor x = mixed[0].unflatten(2, {heads_, head_dim_});
    const Steps steps = decaying_steps(parts[2], dt_bias_, a_log_);
    const Tensor y = ops::matrix_scan({.q_BLGK = mixed[2].unflatten(2, {groups_, -1}),
                                       .k_BLGK = mixed[1].unflatten(2, {groups_, -1}),
                                       .v_BLHV = x,
                                       .log_decay_BLHK = steps.log_decay_BLH1,
                                       .beta_BLH = steps.step_BLH,
                                       .reversed_heads = config_.bidirectional ? heads_ / 2 : 0,
                                       .mask_BL = context.mask_BL,
                                       .delta = false});
    // Repeated, because the sum over a whole tensor, of one head, depends on the number of threads.
    const Tensor skip = ops::beside(skip_, x).unsqueeze(1).repeat({1, head_dim_});
    const Tensor all = at::addcmul(y, x, skip);
    const Tensor rows = ops::silu(parts[0], all.flatten(2)).unflatten(2, {groups_, -1});
    const Tensor normed = ops::row_norm(rows, norm_.view({groups_, -1}), kHeadNormEps);
    return ops::linear(normed.flatten(2), out_);
  }

 private:
  Config config_;
  DirectedPlaces places_;
  int64_t inner_, head_dim_, heads_, groups_;  // E, P, H; directions
  Tensor in_, out_;                            // [2 E + 2 groups N + H, D], [D, E]
  Tensor conv_, conv_bias_;                    // [E + 2 groups N, conv_width], [E + 2 groups N]
  Tensor dt_bias_, a_log_, skip_;              // [H]
  Tensor norm_;                                // [E]
};

}  // namespace

constinit const LayerMaker kMakeMamba2 = make_layer<Mamba2>;

}  // namespace lra::mixers
