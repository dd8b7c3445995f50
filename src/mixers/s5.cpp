// S5 (Smith et al. 2023, arXiv:2208.04933): one linear state space for all channels, x' = Lambda x
// + B u, y = C x + D u, with a diagonal Lambda, discretized by zero-order hold (equation 6), each
// state with its own step dt or all with one. Conjugate pairs are kept once, so y is 2 Re(C x) + D
// u. A second direction runs from the end of the sequence with the same Lambda and B; its states
// have their own columns of C.
//
// Lambda starts as the normal part of HiPPO-LegS in each of `blocks` blocks, with eigenvectors V of
// one block: B = V^H B', C = C' V with real B' and complex C' (section 3.2, and the authors' code,
// lindermanlab/S5, for the distributions: docs/deviations.md). The direction of an eigenvector is
// free: here its first component is positive.
//
// The gate and dropout after it belong to the layer (GatedOutput), as in the authors' block.
#include <numbers>

#include "layers/gated_output.h"
#include "mixers/sequence_layer.h"
#include "mixers/specs/s5.h"
#include "mixers/state_space.h"
#include "ops/product.h"
#include "ops/scan/held_pairs.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr double kLargestReal = -1e-4;  // of a pole, where poles are clipped

constexpr int64_t kMostOfABlock = 512;  // states

class S5 : public SequenceLayer {
 public:
  using Config = S5Config;

  S5(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config) {
    check(config);
    const int64_t dim = shape.model_dim, modes = config.states / 2;
    const LegsEigenpairs hippo = legs_eigenpairs(config.states / config.blocks);
    // Matrices are multiplied on the CPU, the same on every device.
    const layers::Initializer host = init.on_cpu();
    const auto placed = [&](const Tensor& t) { return t.to(init.device(), at::kFloat); };
    dt_ = register_in_group("dt", "dt",
                            log_uniform_steps(init.of("dt"), config.shared_step ? 1 : modes,
                                              config.dt_min, config.dt_max));
    lambda_re_ = register_in_group("ssm", "lambda_re", placed(at::full({modes}, -0.5)));
    lambda_im_ =
        register_in_group("ssm", "lambda_im", placed(hippo.frequencies.repeat({config.blocks})));
    b_ = register_in_group("b", "b", placed(initial_b(host.of("b"), hippo, dim)));
    c_ = register_parameter("c", placed(initial_c(host.of("c"), hippo, dim)));
    skip_ = add_normal("skip", init, {dim}, 1);
    output_ = add<layers::GatedOutput>("output", init, dim, config.output);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    return output_->forward(mimo_state_space(u_BLD, discretised(), context.mask_BL), context);
  }

 private:
  static void check(const Config& config) {
    if (config.states % (2 * config.blocks) != 0) {
      throw Error({.where = "mixer.states",
                   .what = std::to_string(config.states) +
                           " states do not form conjugate pairs in " +
                           std::to_string(config.blocks) + " equal blocks",
                   .expected = "a multiple of 2 x mixer.blocks"});
    }
    if (config.states / config.blocks > kMostOfABlock) {
      throw Error(
          {.where = "mixer.states",
           .what = std::to_string(config.states / config.blocks) +
                   " states in a block of HiPPO take minutes to diagonalize",
           .expected = "at most " + std::to_string(kMostOfABlock) + " for each of mixer.blocks"});
    }
  }

  // V^H B' [2, states / 2, D] with B' [states, D], LeCun normal as a matrix of that many inputs.
  Tensor initial_b(const layers::Initializer& init, const LegsEigenpairs& hippo,
                   int64_t dim) const {
    const Tensor drawn_JDp = init.lecun(dim, config_.states)
                                 .to(at::kDouble)
                                 .view({dim, config_.blocks, -1})
                                 .transpose(0, 1);
    const auto plane = [&](const Tensor& v) {
      return ops::product(drawn_JDp, v.expand({config_.blocks, -1, -1}))
          .transpose(1, 2)
          .reshape({-1, dim});
    };
    return at::stack({plane(hippo.v_re), -plane(hippo.v_im)});
  }

  // [D, directions, 2, states / 2]
  Tensor initial_c(const layers::Initializer& init, const LegsEigenpairs& hippo,
                   int64_t dim) const {
    const int64_t directions = config_.bidirectional ? 2 : 1, states = config_.states;
    if (config_.c_init == "complex_normal") {
      return init.normal({dim, directions, 2, states / 2}, std::numbers::sqrt2 / 2);
    }
    const double scale = config_.c_init == "lecun_normal" ? layers::inverse_root(dim) : 1;
    const Tensor drawn = init.lecun(dim * directions * 2, states).to(at::kDouble) * scale;
    const auto times = [&](const Tensor& v) {
      return ops::product(drawn.view({-1, v.size(0)}), v)
          .view({dim, directions, 2, states / 2})
          .unbind(2);
    };
    const auto by_re = times(hippo.v_re), by_im = times(hippo.v_im);
    return at::stack({by_re[0] - by_im[1], by_im[0] + by_re[1]}, 2);
  }

  // Conjugate pairs count twice, in B.
  MimoStateSpace discretised() const {
    // LibTorch's clamp has another gradient at its bound from 2.14 on.
    const Tensor re = config_.clip_poles
                          ? at::where(lambda_re_ > kLargestReal, kLargestReal, lambda_re_)
                          : lambda_re_;
    // Every state is a channel with a pair of poles of its own, and an input a direction.
    const auto [a_2NP, b_D2NP] =
        ops::hold_pairs({re.unsqueeze(1), lambda_im_.unsqueeze(1), dt_.expand_as(re)},
                        b_.permute({2, 1, 0}).unsqueeze(2));
    return {.a_2P = a_2NP.squeeze(1),
            .b_2PD = b_D2NP.squeeze(2).permute({1, 2, 0}),
            .c_DK2P = c_,
            .skip_D = skip_};
  }

  Config config_;
  Tensor dt_;                     // log of the steps, [1 or P]; P = states / 2
  Tensor lambda_re_, lambda_im_;  // [P]
  Tensor b_;                      // [2, P, D]
  Tensor c_;                      // [D, directions, 2, P]
  Tensor skip_;                   // D of the state space, [D]
  std::shared_ptr<layers::GatedOutput> output_;
};

}  // namespace

constinit const LayerMaker kMakeS5 = make_layer<S5>;

}  // namespace lra::mixers
