// LRU, the linear recurrent unit (Orvieto et al. 2023, arXiv:2303.06349): x_k = lambda x_{k-1} +
// gamma B u_k, y_k = Re(C x_k) + D u_k, element by element with lambda = exp(-exp(nu) + i
// exp(theta)), which is inside the unit circle for any nu (section 3.3). Initially lambda is
// uniform on the ring r_min <= |lambda| <= r_max with phases in [0, max_phase] (lemma 3.2), and
// gamma = sqrt(1 - |lambda|^2) (section 3.4); nu, theta and gamma are learned as logarithms. A
// second direction runs from the end of the sequence with the same lambda, gamma and B; its states
// have their own columns of C.
//
// It is followed by GELU, the block's dropout and a gated linear unit (GatedOutput).
#include <numbers>

#include "layers/gated_output.h"
#include "mixers/sequence_layer.h"
#include "mixers/specs/lru.h"
#include "mixers/state_space.h"
#include "ops/precision.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr double kLargestSquare = 1 - 1e-7;  // of |lambda| at first, where gamma has a logarithm

class Lru : public SequenceLayer {
 public:
  using Config = LruConfig;

  Lru(const layers::Initializer& init, const Config& config, const LayerShape& shape) {
    check_order("mixer.r_min", config.r_min, "mixer.r_max", config.r_max,
                "0 <= r_min <= r_max <= 1");
    const int64_t dim = shape.model_dim, states = config.states;
    const double least = config.r_min * config.r_min, most = config.r_max * config.r_max;
    const Tensor square = (least + (most - least) * uniform_on_cpu(init.of("nu_log"), states))
                              .clamp(1e-30, kLargestSquare);
    const auto placed = [&](const Tensor& t) { return t.to(init.device(), at::kFloat); };
    nu_log_ = register_in_group("ssm", "nu_log", placed((-0.5 * square.log()).log()));
    theta_log_ = register_in_group(
        "ssm", "theta_log",
        placed((config.max_phase * uniform_on_cpu(init.of("theta_log"), states)).log()));
    gamma_log_ = register_in_group("ssm", "gamma_log", placed(0.5 * (1 - square).log()));
    b_ = register_in_group("b", "b",
                           init.of("b").normal({2, states, dim}, layers::inverse_root(2 * dim)));
    c_ = add_normal("c", init, {dim, config.bidirectional ? 2 : 1, 2, states},
                    layers::inverse_root(states));
    skip_ = add_normal("skip", init, {dim}, 1);
    output_ = add<layers::GatedOutput>("output", init, dim, config.output);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const auto type = ops::wide_type(u_BLD);
    const auto exp = [](const Tensor& t) { return t.to(at::kDouble).exp(); };
    const Tensor size = (-exp(nu_log_)).exp(), angle = exp(theta_log_);
    const MimoStateSpace system{
        .a_2P = at::stack({size * angle.cos(), size * angle.sin()}).to(type),
        .b_2PD = exp(gamma_log_).to(type).unsqueeze(1) * b_,
        .c_DK2P = c_,
        .skip_D = skip_};
    return output_->forward(mimo_state_space(u_BLD, system, context.mask_BL), context);
  }

 private:
  Tensor nu_log_, theta_log_, gamma_log_;  // [P]
  Tensor b_;                               // [2, P, D]
  Tensor c_;                               // [D, directions, 2, P]
  Tensor skip_;                            // D of the recurrence, [D]
  std::shared_ptr<layers::GatedOutput> output_;
};

}  // namespace

constinit const LayerMaker kMakeLru = make_layer<Lru>;

}  // namespace lra::mixers
