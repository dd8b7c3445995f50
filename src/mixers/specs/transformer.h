// Transformer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct TransformerConfig {
  static constexpr LayerSpec kSpec = {
      .name = "transformer",
      .title = "Transformer",
      .paper = "Vaswani et al. 2017, arXiv:1706.03762",
      .cost = "L^2",
      .facts = {.attention_weights = true, .attention_dropout = true}};
  bool rotary = false, causal = false;
  void fields(auto& f) {
    f("rotary", rotary,
      "rotate queries and keys by their position, in addition to model.positions");
    f("causal", causal, "no token attends to a later one");
  }
};

}  // namespace lra::mixers
