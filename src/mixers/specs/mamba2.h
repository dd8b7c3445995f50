// Mamba-2: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kMamba2Groups[] = {
    {.name = "ssm", .what = "rates, steps and skips of the state spaces, without weight decay"}};

struct Mamba2Config {
  static constexpr LayerSpec kSpec = {.name = "mamba2",
                                      .title = "Mamba-2",
                                      .paper = "Dao and Gu 2024, arXiv:2405.21060",
                                      .family = "state space",
                                      .cost = "L N",
                                      .groups = kMamba2Groups};
  int64_t states = 128, head_channels = 0, expand = 2, conv_width = 4;
  bool bidirectional = true;
  double a_min = 1, a_max = 16, dt_min = 1e-3, dt_max = 0.1;
  void fields(auto& f) {
    f("states", states, "states of each channel", between(1, 1024));
    f("head_channels", head_channels, "inner channels that share a decay; 0: a quarter of them",
      between(0, 65536));
    f("expand", expand, "inner channels per channel of the model", between(1, 64));
    f("conv_width", conv_width, "tokens that the convolution sees", between(1, 64));
    f("bidirectional", bidirectional, "half of the heads run from the end of the sequence");
    f("a_min", a_min, "smallest initial rate of decay", between(0, 1e6));
    f("a_max", a_max, "largest initial rate of decay", between(1e-6, 1e6));
    f("dt_min", dt_min, "smallest initial step", between(1e-6, 10));
    f("dt_max", dt_max, "largest initial step", between(1e-6, 10));
  }
};

}  // namespace lra::mixers
