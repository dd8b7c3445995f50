// mLSTM, the layer of xLSTM with a matrix memory (Beck et al. 2024, arXiv:2405.04517, section 2.3
// and figure 10): with [x, z] = W_up u of E = expand D channels each and c = SiLU(conv(x) + bias),
//
//   q, k = B_q c, B_k c,   v = B_v x,   (i, f) = W [q, k, v] + bias for each head,
//   C_t = sigmoid(f) C_{t-1} + exp(i) k v^T / sqrt(K),   n_t the same with 1 for v,
//   h = C_t^T q / max(|n_t . q|, 1),   result = W_down ((norm(h) + skip c) SiLU(z)),
//
// with matrices B of `block` by `block` on the diagonal and a layer norm of each head without bias,
// by the scan of ops/scan/matrix_scan.h; n is one more value, 1. exp(i) can be of any size: states
// are kept relative to exp(m_t), m_t = max(log sigmoid(f) + m_{t-1}, i), m_0 = 0, which turns the
// bound 1 into exp(-m_t) (section A.2).
//
// `bidirectional` lets the second half of the heads run from the end, with a convolution that looks
// at later tokens (recurrent_heads.h). Differences from the authors' code: docs/deviations.md.
#include "mixers/specs/mlstm.h"
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

constexpr double kNeverIn = -1e30;     // i of padding
constexpr double kLeastBound = 1e-30;  // exp(-m) can underflow

class MLstm : public SequenceLayer {
 public:
  using Config = MLstmConfig;

  MLstm(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config), inner_(config.expand * shape.model_dim) {
    check_halves("mixer.num_heads", config.num_heads, config.bidirectional);
    check_divides("mixer.num_heads", config.num_heads, inner_);
    check_divides("mixer.block", config.block, inner_);
    const int64_t dim = shape.model_dim, heads = config.num_heads, block = config.block;
    const auto normal = [&](const char* name, at::IntArrayRef sizes, double variance) {
      return add_normal(name, init, sizes, std::sqrt(variance));
    };
    const double small = 0.4 / static_cast<double>(dim);
    up_ = normal("up_weight", {2 * inner_, dim}, small);
    conv_ = normal("conv_weight", {inner_, config.conv_width}, 1 / double(config.conv_width));
    conv_bias_ = register_parameter("conv_bias", init.zeros({inner_}));
    qkv_ = normal("qkv_weight", {3, inner_ / block, block, block}, small);
    gate_ = register_parameter("gate_weight", init.zeros({2 * heads, 3 * inner_}));
    gate_bias_ = register_parameter(
        "gate_bias", at::cat({init.of("gate_bias").normal({heads}, 0.1), forget_bias(init)}));
    norm_ = register_parameter("norm_weight", init.ones({inner_}));
    skip_ = register_parameter("skip", init.ones({inner_}));
    down_ = normal("down_weight", {dim, inner_}, 1 / static_cast<double>(inner_));
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const auto parts = ops::linear(u_BLD, up_).chunk(2, 2);
    const DirectedKernel conv = directed_kernel(conv_, {inner_}, config_.bidirectional, places_);
    const Tensor c =
        ops::convolution_silu(parts[0], context.mask_BL, conv.kernel_EK, conv_bias_, conv.future);
    const auto of_qkv = qkv_.unbind();
    const auto made = [&](const Tensor& x, size_t n) {
      return ops::linear(x, block_diagonal(of_qkv[n]));
    };
    const Tensor q = made(c, 0), k = made(c, 1), v = made(parts[0], 2);
    const Tensor gates = ops::linear(at::cat({q, k, v}, 2), gate_, gate_bias_);
    const Tensor h = attended(q, k, v, gates, context);
    const Tensor weight = norm_.view({config_.num_heads, -1});
    const Tensor normed = ops::row_norm(h, weight, kHeadNormEps, /*centered=*/true).flatten(2);
    const Tensor read = normed + c * ops::beside(skip_, c);
    return ops::linear(ops::silu(parts[1], read), down_);
  }

 private:
  // Initial biases of the forget gates: the same for the heads of each direction.
  Tensor forget_bias(const layers::Initializer& init) const {
    const int64_t directions = config_.bidirectional ? 2 : 1;
    return at::linspace(config_.forget_min, config_.forget_max, config_.num_heads / directions,
                        at::kDouble)
        .repeat({directions})
        .to(init.device(), at::kFloat);
  }

  struct Stabilized {
    Tensor log_decay_BLH, log_in_BLH, bound_BLH;  // relative to exp(m)
  };

  // Gates in the order of time of one direction; log_forget <= 0, both float64.
  static Stabilized stabilized(const Tensor& log_in_BLH, const Tensor& log_forget_BLH) {
    const Tensor decayed = log_forget_BLH.cumsum(1);
    // The result does not depend on m, and so has no gradient by it.
    const Tensor m =
        (decayed + std::get<0>((log_in_BLH - decayed).cummax(1)).clamp_min(0)).detach();
    const Tensor before = at::constant_pad_nd(m, {0, 0, 1, 0}).narrow(1, 0, m.size(1));
    // At most 0 but for rounding, which must not take the gradient, as clamp_max would.
    const Tensor log_decay = log_forget_BLH + before - m;
    return {log_decay - log_decay.detach().clamp_min(0), log_in_BLH - m,
            (-m).exp().clamp_min(kLeastBound)};
  }

  Tensor attended(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gates_BL2H,
                  const layers::Context& context) const {
    const int64_t heads = config_.num_heads, reversed = config_.bidirectional ? heads / 2 : 0;
    const auto type = ops::wide_type(q);
    const auto gate = gates_BL2H.to(at::kDouble).chunk(2, 2);
    Tensor log_in = gate[0], log_forget = -ops::softplus(-gate[1]);
    if (context.mask_BL.defined()) {
      const Tensor padded = context.mask_BL.eq(0).unsqueeze(2);
      log_in = log_in.masked_fill(padded, kNeverIn);
      log_forget = log_forget.masked_fill(padded, 0);
    }
    Stabilized s = stabilized(log_in.narrow(2, 0, heads - reversed),
                              log_forget.narrow(2, 0, heads - reversed));
    if (reversed > 0) {
      const auto turned = [&](const Tensor& t) { return t.narrow(2, reversed, reversed).flip(1); };
      const Stabilized back = stabilized(turned(log_in), turned(log_forget));
      const auto both = [](const Tensor& a, const Tensor& b) { return at::cat({a, b.flip(1)}, 2); };
      s = {both(s.log_decay_BLH, back.log_decay_BLH), both(s.log_in_BLH, back.log_in_BLH),
           both(s.bound_BLH, back.bound_BLH)};
    }
    const auto of_heads = [&](const Tensor& t) { return t.unflatten(2, {heads, -1}); };
    const double scale = layers::inverse_root(inner_ / heads);
    const Tensor o = ops::matrix_scan({.q_BLGK = of_heads(q),
                                       .k_BLGK = of_heads(k),
                                       .v_BLHV = at::constant_pad_nd(of_heads(v), {0, 1}, 1),
                                       .log_decay_BLHK = s.log_decay_BLH.to(type).unsqueeze(3),
                                       .beta_BLH = (s.log_in_BLH.exp() * scale).to(type),
                                       .reversed_heads = reversed,
                                       .mask_BL = context.mask_BL,
                                       .delta = false});
    const auto sums = o.split_with_sizes({inner_ / heads, 1}, 3);
    const Tensor bound = s.bound_BLH.to(o.scalar_type()).unsqueeze(3);
    return sums[0] / at::maximum(sums[1].abs(), bound);
  }

  Config config_;
  DirectedPlaces places_;
  int64_t inner_;                   // E
  Tensor up_, down_, skip_, norm_;  // [2 E, D], [D, E], [E], [E]
  Tensor conv_, conv_bias_;         // [E, conv_width], [E]
  Tensor qkv_;                      // [3, E / block, block, block]
  Tensor gate_, gate_bias_;         // [2 H, 3 E], [2 H]
};

}  // namespace

constinit const LayerMaker kMakeMLstm = make_layer<MLstm>;

}  // namespace lra::mixers
