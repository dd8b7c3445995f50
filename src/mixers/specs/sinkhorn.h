// Sinkhorn Transformer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct SinkhornConfig {
  static constexpr LayerSpec kSpec = {
      .name = "sinkhorn",
      .title = "Sinkhorn Transformer",
      .paper = "Tay et al. 2020, arXiv:2002.11296",
      .family = "learned pattern",
      .cost = "L b + (L/b)^2",
      .facts = {.attention_weights = true, .attention_dropout = true, .draws_in_training = true}};
  int64_t block = 50, iterations = 5;
  double temperature = 0.75;
  bool noise = true;
  void fields(auto& f) {
    f("block", block, "tokens per block", between(1, kMostTokens));
    f("iterations", iterations, "iterations of the Sinkhorn normalization", between(1, 1000));
    f("temperature", temperature, "divisor of the sort logits", between(1e-3, 1e3));
    f("noise", noise, "Gumbel noise on the sort logits while training");
  }
};

}  // namespace lra::mixers
