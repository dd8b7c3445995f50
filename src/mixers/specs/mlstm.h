// mLSTM: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct MLstmConfig {
  static constexpr LayerSpec kSpec = {.name = "mlstm",
                                      .title = "mLSTM",
                                      .paper = "Beck et al. 2024, arXiv:2405.04517",
                                      .family = "linear attention",
                                      .cost = "L K"};
  int64_t num_heads = 4, expand = 2, conv_width = 4, block = 4;
  double forget_min = 3, forget_max = 6;
  bool bidirectional = true;
  void fields(auto& f) {
    f("num_heads", num_heads, "heads, each with a state of its own", between(1, 4096));
    f("expand", expand, "inner channels per channel of the model", between(1, 64));
    f("conv_width", conv_width, "tokens that the convolution sees", between(1, 64));
    f("block", block, "neighboring channels that a query, key or value is made of",
      between(1, 65536));
    f("forget_min", forget_min, "initial bias of the first head's forget gate", between(-30, 30));
    f("forget_max", forget_max, "initial bias of the last head's; higher: a longer memory",
      between(-30, 30));
    f("bidirectional", bidirectional, "half of the heads run from the end of the sequence");
  }
};

}  // namespace lra::mixers
