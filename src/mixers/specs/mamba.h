// Mamba: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kMambaGroups[] = {
    {.name = "ssm", .what = "rates, steps and biases of the state spaces, without weight decay"}};

struct MambaConfig {
  static constexpr LayerSpec kSpec = {.name = "mamba",
                                      .title = "Mamba",
                                      .paper = "Gu and Dao 2023, arXiv:2312.00752",
                                      .family = "state space",
                                      .cost = "L N",
                                      .groups = kMambaGroups};
  int64_t states = 16, expand = 2, conv_width = 4, dt_rank = 0, blocks = 1;
  bool bidirectional = true, channel_bias = false, complex_states = false;
  double dt_min = 1e-3, dt_max = 0.1;
  void fields(auto& f) {
    f("states", states, "states of each channel", between(1, 1024));
    f("expand", expand, "inner channels per channel of the model", between(1, 64));
    f("conv_width", conv_width, "tokens that the convolution sees", between(1, 1024));
    f("dt_rank", dt_rank, "rank of the projection to steps; 0: a sixteenth of the model's width",
      between(0, 65536));
    f("blocks", blocks, "blocks of channels with independent selection", between(1, 65536));
    f("channel_bias", channel_bias, "each channel learns numbers to add to b");
    f("complex_states", complex_states, "states, b and c are complex, as in the block-biased form");
    f("bidirectional", bidirectional, "a second scan from the end of the sequence");
    f("dt_min", dt_min, "smallest initial step", between(1e-6, 10));
    f("dt_max", dt_max, "largest initial step", between(1e-6, 10));
  }
};

}  // namespace lra::mixers
