// Longformer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct LongformerConfig {
  static constexpr LayerSpec kSpec = {
      .name = "longformer",
      .title = "Longformer",
      .paper = "Beltagy et al. 2020, arXiv:2004.05150",
      .family = "fixed pattern",
      .cost = "L w",
      .facts = {.attention_weights = true, .attention_dropout = true}};
  int64_t window = 512, global_tokens = 1;
  bool causal = false;
  void fields(auto& f) {
    f("window", window, "neighbors a token attends to, half of them on either side; even",
      between(0, kMostTokens));
    f("global_tokens", global_tokens, "how many of the first tokens are global",
      between(0, kMostTokens));
    f("causal", causal, "no token attends to a later one");
  }
  void check() const {
    if (window % 2 == 0) return;
    throw Error({.where = "mixer.window",
                 .what = std::to_string(window) + " is odd",
                 .expected = "an even number",
                 .advice = "half of it lies on either side of a token"});
  }
};

}  // namespace lra::mixers
