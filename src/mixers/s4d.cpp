// S4D (Gu et al. 2022, arXiv:2206.11893): each channel is filtered by a linear state space with a
// diagonal state matrix, s' = lambda s + x, y = Re sum_n C_n s_n + D x, discretized with its own
// step dt by zero-order hold (equation 5): a = exp(dt lambda), and C (a - 1) / lambda reads the
// states of s[l] = a s[l - 1] + x[l]. Only the product of B and C counts, so B is 1. The initial
// lambda are those of the paper's section 4.2: Lin, Inv, LegS and Real. `alpha` scales the
// imaginary parts of Lin (Yu et al. 2024, arXiv:2410.02035, without its second change, a learned
// power of the frequency in front of the whole spectrum, which no recurrence has).
//
// The released code (state-spaces/s4) computes the kernel of the convolution, multiplies spectra,
// and keeps poles for `states` / 2 conjugate pairs of one copy or of each channel; the recurrence
// computes the same function. The gate and dropout after it belong to the layer (GatedOutput), as
// in the released block.
#include <numbers>

#include "layers/gated_output.h"
#include "mixers/sequence_layer.h"
#include "mixers/specs/s4d.h"
#include "mixers/state_space.h"
#include "ops/precision.h"
#include "ops/scan/diagonal_scan.h"
#include "ops/scan/held_pairs.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// The imaginary parts of HiPPO-LegS' normal part: the positive ones, [states / 2], ascending.
Tensor legs_frequencies(int64_t states) {
  const Tensor antisymmetric = legs_antisymmetric(states);
  const Tensor eigenvalues =
      at::linalg_eigvalsh(at::complex(at::zeros_like(antisymmetric), antisymmetric));
  return eigenvalues.narrow(0, states / 2, states / 2);
}

// The poles a [P, n, D] and outputs c [K, P, n, D] of ops::diagonal_scan.
struct Discretised {
  Tensor a, c;
};

class S4d : public SequenceLayer {
 public:
  using Config = S4dConfig;

  S4d(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config) {
    check(config);
    const int64_t dim = shape.model_dim, modes = is_real() ? config.states : config.states / 2;
    const int64_t copies = config.shared_poles ? 1 : dim;
    const auto of_each = [&](const Tensor& poles) {
      return poles.to(init.device(), at::kFloat).expand({copies, modes}).contiguous();
    };
    dt_ = register_in_group("dt", "dt", initial_steps(init.of("dt"), dim));
    log_rate_ = register_in_group("ssm", "log_rate", of_each(rates(modes).log()));
    if (!is_real()) {
      frequency_ = register_in_group("ssm", "frequency", of_each(frequencies(modes)));
    }
    // A standard normal complex number has parts of variance 1/2.
    const int64_t directions = config.bidirectional ? 2 : 1, planes = is_real() ? 1 : 2;
    c_ = register_in_group("c", "c",
                           init.of("c").normal({directions, dim, modes, planes},
                                               is_real() ? 1 : std::numbers::sqrt2 / 2));
    skip_ = add_normal("skip", init, {dim}, 1);
    output_ = add<layers::GatedOutput>("output", init, dim, config.output);
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    const auto type = ops::wide_type(x_BLD);
    const Discretised ssm = discretised();
    const Tensor y_BLD = ops::diagonal_scan({.x_BLD = x_BLD,
                                             .a_PND = ssm.a.to(type),
                                             .c_KPND = ssm.c.to(type),
                                             .skip_D = skip_,
                                             .mask_BL = context.mask_BL});
    return output_->forward(y_BLD, context);
  }

 private:
  static void check(const Config& config) {
    if (config.init != "real" && config.states % 2 != 0) {
      throw Error({.where = "mixer.states",
                   .what = std::to_string(config.states) + " states do not form conjugate pairs",
                   .expected = "an even number",
                   .advice = "use one more, or mixer.init=real"});
    }
  }
  bool is_real() const { return config_.init == "real"; }

  // Log-uniform in [dt_min, dt_max], before the transform.
  Tensor initial_steps(const layers::Initializer& init, int64_t dim) const {
    const Tensor log_dt = log_uniform_steps(init, dim, config_.dt_min, config_.dt_max);
    return config_.dt_transform == "exp" ? log_dt : log_dt.exp().expm1().log();
  }
  Tensor rates(int64_t modes) const {
    return is_real() ? at::arange(modes, at::kDouble) + 1 : at::full({modes}, 0.5, at::kDouble);
  }
  Tensor frequencies(int64_t modes) const {
    const Tensor n = at::arange(modes, at::kDouble);
    const auto states = static_cast<double>(config_.states);
    if (config_.init == "legs") return legs_frequencies(config_.states);
    if (config_.init == "lin") return config_.alpha * std::numbers::pi * n;
    return states / std::numbers::pi * (states / (2 * n + 1) - 1);
  }

  Discretised discretised() const {
    const bool softplus = config_.dt_transform == "softplus";
    if (!is_real()) {
      const auto [a, c] =
          ops::hold_pairs({log_rate_, frequency_, dt_, /*log_rate=*/true, softplus}, c_);
      return {a, c};
    }
    // In float64, where 1 - |a| of long memories has digits.
    const Tensor learned = dt_.to(at::kDouble), rate = log_rate_.to(at::kDouble).exp().t();
    const Tensor dt = softplus ? learned.exp().log1p() : learned.exp();
    const Tensor a = (-rate * dt).exp();
    return {a.unsqueeze(0), c_.to(at::kDouble).permute({0, 3, 2, 1}) * ((1 - a) / rate)};
  }

  Config config_;
  Tensor dt_;         // [D], before the transform
  Tensor log_rate_;   // [1 or D, n]: Re lambda = -exp(log_rate)
  Tensor frequency_;  // [1 or D, n]: Im lambda; undefined for real poles
  Tensor c_;          // [directions, D, n, parts]
  Tensor skip_;       // D of the state space, [D]
  std::shared_ptr<layers::GatedOutput> output_;
};

}  // namespace

constinit const LayerMaker kMakeS4d = make_layer<S4d>;

}  // namespace lra::mixers
