// GLA: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct GlaConfig {
  static constexpr LayerSpec kSpec = {.name = "gla",
                                      .title = "GLA",
                                      .paper = "Yang et al. 2023, arXiv:2312.06635",
                                      .family = "linear attention",
                                      .cost = "L K"};
  int64_t num_heads = 4, key_dim = 0, value_dim = 0, rank = 16;
  double temperature = 16, decay_bias = 0;
  bool bidirectional = true;
  void fields(auto& f) {
    f("num_heads", num_heads, "heads, each with a state of its own", between(1, 4096));
    f("key_dim", key_dim, "width of a key; 0: half of the model's width for all heads",
      between(0, 65536));
    f("value_dim", value_dim, "width of a value; 0: the model's width for all heads",
      between(0, 65536));
    f("rank", rank, "rank of the projection to decays", between(1, 65536));
    f("temperature", temperature, "the root of the sigmoid that decays are", between(1e-3, 1e6));
    f("decay_bias", decay_bias, "initial bias of the decays; positive: a longer memory",
      between(-30, 30));
    f("bidirectional", bidirectional, "half of the heads run from the end of the sequence");
  }
};

}  // namespace lra::mixers
