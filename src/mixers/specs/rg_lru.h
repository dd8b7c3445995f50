// RG-LRU: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kRgLruGroups[] = {
    {.name = "lru", .what = "decays of the recurrence, without weight decay"}};

struct RgLruConfig {
  static constexpr LayerSpec kSpec = {.name = "rg_lru",
                                      .title = "RG-LRU",
                                      .paper = "De et al. 2024, arXiv:2402.19427",
                                      .family = "linear recurrence",
                                      .cost = "L",
                                      .groups = kRgLruGroups};
  int64_t inner_dim = 0, blocks = 4, conv_width = 4;
  double r_min = 0.9, r_max = 0.999;
  bool bidirectional = true;
  void fields(auto& f) {
    f("inner_dim", inner_dim, "channels of the recurrence; 0: the model's width",
      between(0, 65536));
    f("blocks", blocks, "blocks of channels whose gates depend on each other", between(1, 4096));
    f("conv_width", conv_width, "tokens that the convolution sees", between(1, 64));
    f("r_min", r_min, "smallest initial decay of an open gate", between(1e-6, 1 - 1e-9));
    f("r_max", r_max, "largest initial decay of an open gate", between(1e-6, 1 - 1e-9));
    f("bidirectional", bidirectional, "half of the channels run from the end of the sequence");
  }
};

}  // namespace lra::mixers
