// BigBird: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct BigBirdConfig {
  static constexpr LayerSpec kSpec = {
      .name = "bigbird",
      .title = "BigBird",
      .paper = "Zaheer et al. 2020, arXiv:2007.14062",
      .family = "fixed pattern",
      .cost = "L b",
      .facts = {.attention_weights = true, .attention_dropout = true}};
  int64_t block = 64, random_blocks = 3;
  std::string random_range = "all";
  bool causal = false;
  void fields(auto& f) {
    f("block", block, "tokens per block", between(1, kMostTokens));
    f("random_blocks", random_blocks, "random key blocks per query block", between(0, kMostTokens));
    f("random_range", random_range,
      "where random blocks come from: the whole sequence, or its first 1024 tokens (as released)",
      one_of({"all", "first_1024"}));
    f("causal", causal, "no token attends to a later one; random blocks are drawn as without");
  }
};

}  // namespace lra::mixers
