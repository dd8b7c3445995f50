// RetNet: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct RetNetConfig {
  static constexpr LayerSpec kSpec = {.name = "retnet",
                                      .title = "RetNet",
                                      .paper = "Sun et al. 2023, arXiv:2307.08621",
                                      .family = "linear attention",
                                      .cost = "L K"};
  int64_t num_heads = 4, key_dim = 0, value_dim = 0;
  bool bidirectional = true;
  void fields(auto& f) {
    f("num_heads", num_heads, "heads, each with a decay of its own", between(1, 64));
    f("key_dim", key_dim, "width of a key, even; 0: the model's width for all heads, or less",
      between(0, 65536));
    f("value_dim", value_dim, "width of a value; 0: two keys", between(0, 65536));
    f("bidirectional", bidirectional, "half of the heads run from the end of the sequence");
  }
};

}  // namespace lra::mixers
