// HGRN2 (Qin et al. 2024, arXiv:2404.07904, section 3): linear attention whose state forgets by
// gates for each key channel, and whose keys are what the gates let in,
//
//   f = b + (1 - b) sigmoid(W_f u) in (b, 1)^K,   S_t = diag(f) S_{t-1} + (1 - f) v^T,
//   result = W_out norm(S^T SiLU(W_q u)),
//
// by the scan of ops/scan/matrix_scan.h, with values W_v u as wide as keys and a root mean square
// norm over all heads. The bound b is a parameter of each channel, which is larger in later layers,
// so that these keep more; the first layer has none. `bidirectional` lets the second half of the
// heads run from the end (recurrent_heads.h). Differences from the authors' code:
// docs/deviations.md.
#include "mixers/specs/hgrn2.h"
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

class Hgrn2 : public SequenceLayer {
 public:
  using Config = Hgrn2Config;

  Hgrn2(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : bidirectional_(config.bidirectional) {
    const int64_t dim = shape.model_dim;
    const int64_t width = config.head_channels > 0 ? config.head_channels
                                                   : std::clamp<int64_t>(dim / 4, 1, kWidestHead);
    if (dim % width != 0) {
      throw Error(
          {.where = "mixer.head_channels",
           .what = std::to_string(width) + " do not divide the width " + std::to_string(dim),
           .expected = "a divisor of it"});
    }
    heads_ = dim / width;
    check_halves("mixer.head_channels", heads_, bidirectional_);
    in_ = add_xavier("in_weight", init, 3 * dim, dim);
    const auto layer = static_cast<double>(shape.layer);
    const double bound = config.lower_bound >= 0 ? config.lower_bound : layer / (layer + 1);
    if (bound > 0) {
      bound_ = register_parameter("bound", init.ones({dim}) * std::log(bound / (1 - bound)));
    }
    norm_ = register_parameter("norm_weight", init.ones({dim}));
    out_ = add_xavier("out_weight", init, dim, dim);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const auto parts = ops::linear(u_BLD, in_).chunk(3, 2);  // queries, gates, values
    const auto of_heads = [&](const Tensor& t) { return t.unflatten(2, {heads_, -1}); };
    const Tensor gate = parts[1].to(ops::wide_type(u_BLD)), key = keys(gate);
    const Tensor o = ops::matrix_scan(
        {.q_BLGK = of_heads(ops::silu(parts[0])),
         .k_BLGK = of_heads(key.to(u_BLD.scalar_type())),
         .v_BLHV = of_heads(parts[2]),
         .log_decay_BLHK = of_heads(log_decays(gate, key).to(ops::wide_type(u_BLD))),
         .reversed_heads = bidirectional_ ? heads_ / 2 : 0,
         .mask_BL = context.mask_BL});
    return ops::linear(ops::row_norm(o.flatten(2), norm_, kHeadNormEps), out_);
  }

 private:
  static constexpr int64_t kWidestHead = 128;

  // 1 - f
  Tensor keys(const Tensor& gate_BLD) const {
    const Tensor open = ops::closed_gate(gate_BLD);
    return bound_.defined() ? open * ops::closed_gate(bound_) : open;
  }

  // log f, where f is 1 - key or, if that would cancel, the bound and what is above it.
  Tensor log_decays(const Tensor& gate_BLD, const Tensor& key_BLD) const {
    if (!bound_.defined()) return -ops::softplus(-gate_BLD);
    const Tensor key = key_BLD.to(at::kDouble),
                 sum = ops::sigmoid(bound_) + ops::closed_gate(bound_) * ops::sigmoid(gate_BLD);
    return at::where(key.lt(0.5), 1 - key, sum.to(at::kDouble)).log();
  }

  bool bidirectional_;
  int64_t heads_;
  Tensor in_, bound_, norm_, out_;  // [3 D, D], [D], [D], [D, D]
};

}  // namespace

constinit const LayerMaker kMakeHgrn2 = make_layer<Hgrn2>;

}  // namespace lra::mixers
