// Local Attention: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct LocalConfig {
  static constexpr LayerSpec kSpec = {
      .name = "local",
      .title = "Local Attention",
      .paper = "Tay et al. 2021, arXiv:2011.04006, B.1",
      .family = "fixed pattern",
      .cost = "L b",
      .facts = {.attention_weights = true, .attention_dropout = true}};
  int64_t block = 50;
  std::string groups = "contiguous";
  bool causal = false;
  void fields(auto& f) {
    f("block", block, "tokens per block", between(1, kMostTokens));
    f("groups", groups, "neighbors, or tokens spread over the sequence as in the release",
      one_of({"contiguous", "strided"}));
    f("causal", causal, "no token attends to a later one");
  }
};

}  // namespace lra::mixers
