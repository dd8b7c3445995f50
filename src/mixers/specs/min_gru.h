// minGRU and minLSTM: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct MinGruConfig {
  static constexpr LayerSpec kSpec = {.name = "min_gru",
                                      .title = "minGRU",
                                      .paper = "Feng et al. 2024, arXiv:2410.01201",
                                      .family = "linear recurrence",
                                      .cost = "L"};
  int64_t expand = 1;
  std::string candidate = "positive";
  double gate_bias = 0;
  bool forget_gate = false;
  bool bidirectional = true;
  void fields(auto& f) {
    f("expand", expand, "inner channels per channel of the model", between(1, 64));
    f("candidate", candidate, "what enters the state: a positive function of the input, or linear",
      one_of({"positive", "linear"}));
    f("gate_bias", gate_bias, "initial bias of the gate; negative: a longer memory",
      between(-30, 30));
    f("forget_gate", forget_gate, "a gate of its own for what is kept: minLSTM");
    f("bidirectional", bidirectional, "half of the channels run from the end of the sequence");
  }
};

}  // namespace lra::mixers
