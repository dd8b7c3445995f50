// Synthesizer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct SynthesizerConfig {
  static constexpr LayerSpec kSpec = {
      .name = "synthesizer",
      .title = "Synthesizer",
      .paper = "Tay et al. 2020, arXiv:2005.00743",
      .family = "low rank",
      .cost = "L^2",
      .facts = {.attention_weights = true, .attention_dropout = true}};
  std::string variant = "factorized_random";
  int64_t rank = 32;
  bool dot_product = false, causal = false;
  void fields(auto& f) {
    f("variant", variant, "where the scores come from",
      one_of({"random", "factorized_random", "dense", "factorized_dense"}));
    f("rank", rank, "columns of the two factors of factorized_random; no effect otherwise",
      between(1, kMostTokens));
    f("dot_product", dot_product, "add q . k / sqrt(head width) to the scores");
    f("causal", causal, "a token attends only to itself and earlier tokens");
  }
};

}  // namespace lra::mixers
