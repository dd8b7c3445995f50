// S5: settings and facts.
#pragma once

#include "layers/settings.h"
#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kS5Groups[] = {
    {.name = "ssm", .what = "poles of the state space", .learning_rate = 1e-3},
    {.name = "dt", .what = "step sizes", .learning_rate = 1e-3},
    {.name = "b", .what = "input matrix of the state space", .learning_rate = 1e-3}};

struct S5Config {
  static constexpr LayerSpec kSpec = {.name = "s5",
                                      .title = "S5",
                                      .paper = "Smith et al. 2023, arXiv:2208.04933",
                                      .family = "state space",
                                      .cost = "L N",
                                      .groups = kS5Groups};
  std::string c_init = "lecun_normal", output = "half_glu1";
  int64_t states = 64, blocks = 1;
  bool bidirectional = true, shared_step = false, clip_poles = false;
  double dt_min = 1e-3, dt_max = 0.1;
  void fields(auto& f) {
    f("states", states, "state size of the layer; half as many conjugate pairs", between(2, 65536));
    f("blocks", blocks, "blocks of HiPPO-LegS in the initial state matrix", between(1, 32768));
    f("bidirectional", bidirectional, "a second direction from the end, with its own columns of C");
    f("c_init", c_init,
      "initial C: C' V with variance 1 / (states D) or 1 / states, or standard normal without V",
      one_of({"lecun_normal", "trunc_standard_normal", "complex_normal"}));
    f("shared_step", shared_step, "one step shared by all states");
    f("clip_poles", clip_poles, "real parts of the poles stay at or below -0.0001");
    f("dt_min", dt_min, "smallest initial step", between(1e-6, 10));
    f("dt_max", dt_max, "largest initial step", between(1e-6, 10));
    f("output", output,
      "after the state space, GELU and the block's dropout: one of S5's gates, a gated "
      "linear unit, a linear layer, or nothing",
      one_of(layers::gated_outputs()));
  }
};

}  // namespace lra::mixers
