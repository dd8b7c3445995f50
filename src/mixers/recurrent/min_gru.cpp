// minGRU (Feng et al. 2024, arXiv:2410.01201, section 3.1): a gated recurrent unit whose gates do
// not see its state,
//
//   z = sigmoid(W_z u + b_z),  c = g(W_h u + b_h),  h_t = (1 - z_t) h_{t-1} + z_t c_t,
//   result = W_out h + b_out,
//
// E = expand D channels, g(x) = x + 1/2 for x >= 0, else sigmoid(x) (appendix B), or with
// candidate = "linear" x, as in the plain form. `forget_gate` makes it minLSTM (section 3.2), with
// f = sigmoid(W_f u + b_f) and i = sigmoid(W_z u + b_z),
//
//   h_t = (f_t h_{t-1} + i_t c_t) / (f_t + i_t):  z = i / (f + i) = sigmoid(log i - log f).
//
// The authors compute the recurrence in logarithms, which g makes possible and in which float32
// loses three digits over 16,384 positions; here it is the recurrence itself
// (ops/scan/gated_scan.h). `gate_bias` is the initial b_z: with 0, a state forgets half at each
// token. `bidirectional` lets the second half of the channels run from the end
// (recurrent_heads.h). Differences from the authors' code: docs/deviations.md.
#include "mixers/specs/min_gru.h"
#include "layers/linear.h"
#include "mixers/recurrent/recurrent_heads.h"
#include "mixers/sequence_layer.h"
#include "ops/pointwise/activation.h"
#include "ops/pointwise/gate.h"
#include "ops/precision.h"
#include "ops/scan/gated_scan.h"

namespace lra::mixers {
namespace {

using at::Tensor;

class MinGru : public SequenceLayer {
 public:
  using Config = MinGruConfig;

  MinGru(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config), inner_(config.expand * shape.model_dim) {
    check_halves("mixer.expand", inner_, config.bidirectional);
    gate_ = add<layers::Linear>("gate", init, inner_, shape.model_dim);
    {
      const at::NoGradGuard no_grad;
      gate_->bias.fill_(config.gate_bias);
    }
    if (config.forget_gate) {
      forget_ = add<layers::Linear>("forget", init, inner_, shape.model_dim);
    }
    candidate_ = add<layers::Linear>("candidate", init, inner_, shape.model_dim);
    output_ = add<layers::Linear>("output", init, shape.model_dim, inner_);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    Tensor stream_BLD = u_BLD, gate = gate_->of_stream(stream_BLD);
    if (forget_) {
      const auto minus_log = [](const Tensor& x) {
        return ops::softplus(-x.to(ops::wide_type(x)));
      };
      gate = (minus_log(forget_->of_stream(stream_BLD)) - minus_log(gate)).to(gate.scalar_type());
    }
    const Tensor x = candidate_->forward(stream_BLD);
    const Tensor c = config_.candidate == "linear" ? x : ops::positive(x);
    const Tensor kept = ops::closed_gate(gate.to(ops::wide_type(gate)));
    const Tensor h = ops::gated_scan(kept, ops::gate(c, gate),
                                     config_.bidirectional ? inner_ / 2 : 0, context.mask_BL);
    return output_->forward(h);
  }

 private:
  Config config_;
  int64_t inner_;  // E
  std::shared_ptr<layers::Linear> gate_, forget_, candidate_, output_;
};

}  // namespace

constinit const LayerMaker kMakeMinGru = make_layer<MinGru>;

}  // namespace lra::mixers
