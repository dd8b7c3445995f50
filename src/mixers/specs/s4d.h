// S4D: settings and facts.
#pragma once

#include "layers/settings.h"
#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kS4dGroups[] = {
    {.name = "ssm", .what = "poles of the state spaces", .learning_rate = 1e-3},
    {.name = "dt", .what = "step sizes", .learning_rate = 1e-3},
    {.name = "c", .what = "output matrices of the state spaces"}};

struct S4dConfig {
  static constexpr LayerSpec kSpec = {.name = "s4d",
                                      .title = "S4D",
                                      .paper = "Gu et al. 2022, arXiv:2206.11893",
                                      .family = "state space",
                                      .cost = "L N",
                                      .groups = kS4dGroups};
  std::string init = "legs", dt_transform = "exp", output = "glu";
  int64_t states = 64;
  bool bidirectional = true, shared_poles = true;
  double dt_min = 1e-3, dt_max = 0.1, alpha = 1;
  void fields(auto& f) {
    f("init", init, "initial poles: -1/2 + i pi n, HiPPO's inverse law, HiPPO-LegS, or -(n + 1)",
      one_of({"lin", "inv", "legs", "real"}));
    f("states", states, "state size of a channel; half as many conjugate pairs, except for real",
      between(1, 1024));
    f("bidirectional", bidirectional, "a second C reads the states from the end");
    f("shared_poles", shared_poles, "all channels share the poles, but not the steps");
    f("dt_min", dt_min, "smallest initial step", between(1e-6, 10));
    f("dt_max", dt_max, "largest initial step", between(1e-6, 10));
    f("dt_transform", dt_transform, "function from the learned number to the step",
      one_of({"exp", "softplus"}));
    f("alpha", alpha, "factor of the initial imaginary parts of lin", between(0, 1000));
    f("output", output,
      "after the state space, GELU and the block's dropout: a gated linear unit, one of "
      "S5's gates, a linear layer, or nothing",
      one_of(layers::gated_outputs()));
  }
};

}  // namespace lra::mixers
