// HGRN2: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct Hgrn2Config {
  static constexpr LayerSpec kSpec = {.name = "hgrn2",
                                      .title = "HGRN2",
                                      .paper = "Qin et al. 2024, arXiv:2404.07904",
                                      .family = "linear attention",
                                      .cost = "L K"};
  int64_t head_channels = 0;
  double lower_bound = -1;
  bool bidirectional = true;
  void fields(auto& f) {
    f("head_channels", head_channels,
      "width of a key and of a value; 0: a quarter of the model's width, at most 128",
      between(0, 65536));
    f("lower_bound", lower_bound,
      "initial share of a state that a gate always keeps; 0: no such share; -1: l / (l + 1) in "
      "layer l = 0, 1, ...",
      between(-1, 0.9999));
    f("bidirectional", bidirectional, "half of the heads run from the end of the sequence");
  }
};

}  // namespace lra::mixers
