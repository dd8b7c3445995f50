// A linear recurrent network with a dense matrix, the baseline of the LRU's paper (Orvieto et al.
// 2023, arXiv:2303.06349, section 3.1): h_t = W h_{t-1} + B u_t, y_t = C h_t + D u_t, followed by
// GELU, the block's dropout and a gated linear unit (GatedOutput). A second direction runs from the
// end of the sequence with the same W and B; its states have their own columns of C.
//
// Pairs of tokens are the tokens of a recurrence of half the length, with W^2: a pair's input is
// W v + v' of its two inputs, and its state is that of its second token. Halving goes on down to
// one token, so that all tokens are in matrix products, of 2 N^2 multiplications each together.
//
// Initially W is `radius` times a random orthogonal matrix, and B is scaled by sqrt(1 - radius^2),
// which keeps the variance of the state at that of the input. The paper's Glorot matrix has
// eigenvalues outside the unit circle, whose powers grow over thousands of tokens, and training
// brings others there: W is divided by a bound of its spectral radius where that is above 1, a
// number that its gradient takes for a constant.
#include <cmath>

#include "layers/gated_output.h"
#include "mixers/random_features.h"
#include "mixers/sequence_layer.h"
#include "mixers/specs/linear_rnn.h"
#include "ops/composed.h"
#include "ops/linear.h"
#include "ops/precision.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// h[t] = W h[t - 1] + v[t], or `from_end` h[t] = W h[t + 1] + v[t], over [B, L, N]. Pairs begin at
// the first token in both cases, so that padding behind an example moves none.
Tensor dense_states(const Tensor& v_BLN, const Tensor& w_NN, bool from_end) {
  const int64_t length = v_BLN.size(1);
  if (length <= 1) return v_BLN;
  const Tensor pairs = at::constant_pad_nd(v_BLN, {0, 0, 0, length % 2}).unflatten(1, {-1, 2});
  const Tensor first = pairs.select(2, from_end), second = pairs.select(2, !from_end);
  const Tensor squared = ops::linear(w_NN, w_NN.t());
  const Tensor at_second = dense_states(second + ops::linear(first, w_NN), squared, from_end);
  const Tensor before = from_end ? at::constant_pad_nd(at_second.slice(1, 1), {0, 0, 0, 1})
                                 : at::constant_pad_nd(at_second.slice(1, 0, -1), {0, 0, 1, 0});
  const Tensor at_first = first + ops::linear(before, w_NN);
  const Tensor both = from_end ? at::stack({at_second, at_first}, 2)  //
                               : at::stack({at_first, at_second}, 2);
  return both.flatten(1, 2).narrow(1, 0, length);
}

// W, or W / r where r > 1: the eigenvalues are at most r = (N max |W^m|)^(1/m) in absolute value
// (by the norm of row sums), m = 2^14, which is above the largest by less than 0.1 %.
Tensor within_unit_circle(const Tensor& w_NN) {
  constexpr int kSquarings = 14;
  const auto size = [](const Tensor& t) { return t.abs().amax().clamp_min(1e-30); };
  Tensor power = w_NN.detach(), log_radius = at::zeros({}, power.options());
  for (int k = 0; k < kSquarings; ++k) {
    const Tensor largest = size(power);
    log_radius = log_radius + largest.log() / std::exp2(k);
    power = power / largest;
    power = ops::linear(power, power.t());
  }
  const auto states = static_cast<double>(w_NN.size(0));
  log_radius = log_radius + (states * size(power)).log() / std::exp2(kSquarings);
  return w_NN / log_radius.clamp_min(0).exp();
}

class LinearRnn : public SequenceLayer {
 public:
  using Config = LinearRnnConfig;

  LinearRnn(const layers::Initializer& init, const Config& config, const LayerShape& shape) {
    const int64_t dim = shape.model_dim, states = config.states;
    w_ = register_in_group(
        "ssm", "w",
        (config.radius * layers::inverse_root(states) *
         orthogonal_features(states, states, FeatureNorms::kFixed, init.of("w").key()))
            .to(init.device()));
    b_ = add_normal("b", init, {states, dim},
                    std::sqrt(1 - config.radius * config.radius) * layers::inverse_root(dim));
    c_ = add_normal("c", init, {dim, config.bidirectional ? 2 : 1, states},
                    layers::inverse_root(states));
    skip_ = add_normal("skip", init, {dim}, 1);
    output_ = add<layers::GatedOutput>("output", init, dim, config.output);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const ops::MaybeTensor mask = ops::optional_tensor(context.mask_BL);
    Tensor stream_BLD = u_BLD;
    const Tensor v_BLN =
        ops::without_padding(ops::linear_of_stream(stream_BLD, b_), mask).to(ops::wide_type(u_BLD));
    const Tensor w_NN = within_unit_circle(w_);
    std::vector<Tensor> states = {dense_states(v_BLN, w_NN, false)};
    if (c_.size(1) == 2) states.push_back(dense_states(v_BLN, w_NN, true));
    const Tensor y_BLD = ops::linear(at::cat(states, 2).to(u_BLD.scalar_type()), c_.flatten(1));
    return output_->forward(y_BLD + stream_BLD * ops::beside(skip_, u_BLD), context);
  }

 private:
  Tensor w_;     // [N, N]
  Tensor b_;     // [N, D]
  Tensor c_;     // [D, directions, N]
  Tensor skip_;  // D of the recurrence, [D]
  std::shared_ptr<layers::GatedOutput> output_;
};

}  // namespace

constinit const LayerMaker kMakeLinearRnn = make_layer<LinearRnn>;

}  // namespace lra::mixers
