// The time mixing of RWKV-7 (Peng et al. 2025, arXiv:2503.14456, section 4), a delta rule whose
// decay, rate and removed key are vectors. With s the token before, x_p = x + mu_p (s - x) for each
// p of r, w, k, v, a, g, and sigma the sigmoid,
//
//   r = W_r x_r,  k~ = W_k x_k,  v = W_v x_v,  g = G_2 sigma(G_1 x_g),
//   w = exp(-e^(-1/2) sigma(w_0 + W_2 tanh(W_1 x_w))),  a = sigma(a_0 + A_2 A_1 x_a),
//   kk = l2norm(k_k k~),  k = k~ (1 + k_a (a - 1)),
//   S_t = diag(w) S_{t-1} - (a kk) (S_{t-1}^T kk)^T + k v^T,
//   result = W_out (g (norm(S_t^T r) + (sum of r_k r k) v)),
//
// for each head, with a layer norm over it. Two steps of ops/scan/matrix_scan.h make one: the first
// decays, reads the old state by kk / w and writes by a kk, the second writes k v^T and is read.
//
// `bidirectional` lets the second half of the heads run from the end, with the token behind as s
// (recurrent_heads.h). Differences from the authors' code, among them that a value is not mixed
// with that of the first layer: docs/deviations.md.
#include "mixers/specs/rwkv7.h"

#include <cmath>

#include "mixers/recurrent/recurrent_heads.h"
#include "mixers/sequence_layer.h"
#include "ops/composed.h"
#include "ops/linear.h"
#include "ops/pointwise/activation.h"
#include "ops/pointwise/row_norm.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr double kOutputNormEps = 64e-5, kKeyEps = 1e-12;

class Rwkv7 : public SequenceLayer {
 public:
  using Config = Rwkv7Config;

  Rwkv7(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : directions_(config.bidirectional ? 2 : 1) {
    const int64_t dim = shape.model_dim;
    const int64_t width =
        config.head_channels > 0 ? config.head_channels : usual_width(dim, directions_);
    if (dim % width != 0) {
      throw Error({.where = "mixer.head_channels",
                   .what = std::to_string(width) + " does not divide the model's width, " +
                           std::to_string(dim),
                   .expected = "a divisor"});
    }
    heads_ = dim / width;
    check_halves("mixer.head_channels", heads_, config.bidirectional);
    const auto rank = [&](int64_t given, double factor) {
      const double steps = std::round(factor * std::sqrt(static_cast<double>(dim)) / 32);
      return given > 0 ? given : 32 * std::max<int64_t>(1, static_cast<int64_t>(steps));
    };
    const auto filled = [&](const char* name, double value) {
      return register_parameter(name, value * init.ones({dim}));
    };
    mix_ = register_parameter("mix", first_mixes(dim).to(init.device(), at::kFloat));
    r_ = add_xavier("r_weight", init, dim, dim);
    k_ = add_xavier("k_weight", init, dim, dim);
    v_ = add_xavier("v_weight", init, dim, dim);
    decay_in_ = add_xavier("decay_in_weight", init, rank(config.rank, 2.5), dim);
    decay_out_ = add_xavier("decay_out_weight", init, dim, decay_in_.size(0));
    rate_in_ = add_xavier("rate_in_weight", init, rank(config.rank, 2.5), dim);
    rate_out_ = add_xavier("rate_out_weight", init, dim, rate_in_.size(0));
    gate_in_ = add_xavier("gate_in_weight", init, rank(config.gate_rank, 5), dim);
    gate_out_ = add_xavier("gate_out_weight", init, dim, gate_in_.size(0));
    const auto of_group = [&](const char* name, const Tensor& bias) {
      const Tensor repeated = bias.repeat({directions_}).to(init.device(), at::kFloat);
      return register_in_group("ssm", name, repeated);
    };
    decay_bias_ = of_group("decay_bias", first_decays(dim / directions_, width, shape.layer));
    rate_bias_ = of_group("rate_bias", first_rates(dim / directions_, width));
    removed_ = filled("removed_key", 0.71);
    rated_ = filled("rated_key", 1.02);
    bonus_ = filled("bonus", -0.04);
    norm_ = filled("norm_weight", 1);
    norm_bias_ = filled("norm_bias", 0);
    out_ = add_xavier("out_weight", init, dim, dim);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const Tensor x = ops::without_padding(u_BLD, ops::optional_tensor(context.mask_BL));
    const Seen s = seen(x);
    const auto of_heads = [&](const Tensor& t) { return t.unflatten(2, {heads_, -1}); };
    const auto by = [&](const Tensor& t, const Tensor& parameter) {
      return t * ops::beside(parameter, t);
    };
    const Tensor kk = rows_of_length(1, of_heads(by(s.k, removed_)), kKeyEps);
    const Tensor k = s.k + by(s.k * (s.a - 1), rated_);
    const Tensor written = of_heads(k), value = of_heads(s.v), rate = of_heads(s.a);
    const Tensor log_decay = of_heads(s.log_w);
    const Tensor read_old = kk * ops::exp(-log_decay);
    const auto none = [](const Tensor& t) { return at::zeros_like(t); };
    const Tensor mask = context.mask_BL;
    const Tensor o = ops::matrix_scan(
        {.q_BLGK = two_steps(none(kk), of_heads(s.r)),
         .k_BLGK = two_steps(rate * kk, written),
         .v_BLHV = two_steps(none(value), value),
         .log_decay_BLHK = two_steps(log_decay, none(log_decay)),
         .beta_BLH = at::ones({x.size(0), 2 * x.size(1), heads_}, log_decay.options()),
         .reversed_heads = heads_ / 2 * (directions_ - 1),
         .mask_BL = mask.defined() ? mask.repeat_interleave(2, 1) : mask,
         .reads_BLGK = two_steps(read_old, none(kk))});
    const Tensor y = ops::row_norm(second_step(o), norm_.view({heads_, -1}), kOutputNormEps,
                                   /*centered=*/true)
                         .flatten(2);
    // Each head's sum of r_k r k, by a matrix with r_k on its diagonal of blocks.
    const Tensor bonus = ops::linear(s.r * k, block_diagonal(bonus_.view({heads_, 1, -1})));
    const Tensor of_value = (bonus.unsqueeze(3) * value).flatten(2);
    return ops::linear(((y + ops::beside(norm_bias_, y) + of_value) * s.g).to(u_BLD.scalar_type()),
                       out_);
  }

 private:
  // [B, L, D] in the accumulator dtype, as all that follows up to the result: in bfloat16, kk / w
  // would read something else than what kk was written to.
  struct Seen {
    Tensor r, k, v, a, g, log_w;
  };

  // A projection of x + mu (s - x) is one of [x, s], by two matrices side by side.
  Seen seen(const Tensor& x_BLD) const {
    std::vector<Tensor> r, k, v, a, g, log_w;
    for (int64_t d = 0; d < directions_; ++d) {
      const auto own = [&](const Tensor& t) {
        return t.chunk(directions_)[static_cast<size_t>(d)];
      };
      const auto rows = [&](const Tensor& weight, int64_t which) {
        return at::cat({weight * (1 - mix_[which]), weight * mix_[which]}, 1);
      };
      const Tensor s = d == 0 ? at::constant_pad_nd(x_BLD, {0, 0, 1, -1})
                              : at::constant_pad_nd(x_BLD, {0, 0, -1, 1});
      const Tensor weight = at::cat({rows(own(r_), 0), rows(own(k_), 2), rows(own(v_), 3),
                                     rows(decay_in_, 1), rows(rate_in_, 4), rows(gate_in_, 5)});
      const int64_t width = r_.size(0) / directions_;
      const auto part =
          ops::linear(at::cat({x_BLD, s}, 2), weight)
              .to(ops::wide_type(x_BLD))
              .split_with_sizes(
                  {width, width, width, decay_in_.size(0), rate_in_.size(0), gate_in_.size(0)}, 2);
      r.push_back(part[0]);
      k.push_back(part[1]);
      v.push_back(part[2]);
      const Tensor bounded = 2 * ops::sigmoid(2 * part[3]) - 1;  // tanh
      const Tensor decays = ops::linear(bounded, own(decay_out_), own(decay_bias_));
      log_w.push_back(-std::exp(-0.5) * ops::sigmoid(decays));
      a.push_back(ops::sigmoid(ops::linear(part[4], own(rate_out_), own(rate_bias_))));
      g.push_back(ops::linear(ops::sigmoid(part[5]), own(gate_out_)));
    }
    const auto joined = [](const std::vector<Tensor>& parts) { return at::cat(parts, 2); };
    return {joined(r), joined(k), joined(v), joined(a), joined(g), joined(log_w)};
  }

  // [B, L, H, E] of two steps of a token -> [B, 2 L, H, E], in each head's order of time.
  Tensor two_steps(const Tensor& first, const Tensor& second) const {
    if (directions_ == 1) return at::stack({first, second}, 2).flatten(1, 2);
    const auto a = first.chunk(2, 2), b = second.chunk(2, 2);
    return at::stack({at::cat({a[0], b[1]}, 2), at::cat({b[0], a[1]}, 2)}, 2).flatten(1, 2);
  }
  Tensor second_step(const Tensor& o_B2LHE) const {
    const Tensor pairs = o_B2LHE.unflatten(1, {-1, 2});
    if (directions_ == 1) return pairs.select(2, 1);
    return at::cat({pairs.select(2, 1).chunk(2, 2)[0], pairs.select(2, 0).chunk(2, 2)[1]}, 2);
  }

  // The largest width that cuts the channels into heads for all directions, up to a share of them
  // and the published 64; 1 if there is none.
  static int64_t usual_width(int64_t dim, int64_t directions) {
    int64_t width = std::min<int64_t>(64, dim / (dim % 4 == 0 ? 4 : 2));
    while (width > 1 && dim % (width * directions) != 0) --width;
    return std::max<int64_t>(width, 1);
  }
  // Initial values of the authors' code for the first layer: [6, D], mu of r, w, k, v, a, g.
  static Tensor first_mixes(int64_t dim) {
    const Tensor place = at::arange(dim, at::kDouble) / static_cast<double>(dim);
    std::vector<Tensor> mixes;
    for (const double power : {0.2, 0.9, 0.7, 0.7, 0.9, 0.2}) mixes.push_back(1 - place.pow(power));
    return at::stack(mixes);
  }
  // Rises from -1 to 1 within each head, flat in the middle.
  static Tensor zigzag(int64_t channels, int64_t width) {
    const Tensor place = at::arange(channels, at::kDouble).remainder(width);
    const double half = std::max(0.5, static_cast<double>(width - 1) / 2);
    const Tensor z = (place - half) / half;
    return z * z.abs();
  }
  static Tensor first_decays(int64_t channels, int64_t width, int64_t layer) {
    const Tensor place = at::linspace(0, 1, channels, at::kDouble);
    return -5.5 + 6 * place.pow(layer == 0 ? 1 : 2) + 2.5 * zigzag(channels, width);
  }
  static Tensor first_rates(int64_t channels, int64_t width) {
    return -0.19 + 0.3 * zigzag(channels, width) +
           0.4 * at::linspace(-0.5, 0.5, channels, at::kDouble);
  }

  int64_t directions_, heads_ = 0;
  Tensor mix_;                      // [6, D]
  Tensor r_, k_, v_, out_;          // [D, D]
  Tensor decay_in_, decay_out_;     // [R, D], [D, R]
  Tensor rate_in_, rate_out_;       // the same
  Tensor gate_in_, gate_out_;       // [gate R, D], [D, gate R]
  Tensor decay_bias_, rate_bias_;   // [D]
  Tensor removed_, rated_, bonus_;  // k_k, k_a, r_k: [D]
  Tensor norm_, norm_bias_;         // [D]
};

}  // namespace

constinit const LayerMaker kMakeRwkv7 = make_layer<Rwkv7>;

}  // namespace lra::mixers
