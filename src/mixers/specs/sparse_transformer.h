// Sparse Transformer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct SparseTransformerConfig {
  static constexpr LayerSpec kSpec = {
      .name = "sparse_transformer",
      .title = "Sparse Transformer",
      .paper = "Child et al. 2019, arXiv:1904.10509",
      .family = "fixed pattern",
      .cost = "L sqrt(L)",
      .facts = {.attention_weights = true, .attention_dropout = true}};
  std::string pattern = "fixed";
  int64_t stride = 0;
  int64_t summary = 8;
  bool causal = false;
  bool global_first = false;
  void fields(auto& f) {
    f("pattern", pattern, "which tokens are seen", one_of({"fixed", "strided"}));
    f("stride", stride,
      "tokens per block, or per step; 0: the integer nearest to sqrt(max length), without the "
      "first token if that is global",
      between(0, kMostTokens));
    f("summary", summary,
      "last tokens of each block, which all tokens see, at most the stride; no effect if strided",
      between(1, kMostTokens));
    f("causal", causal, "no token sees a later one");
    f("global_first", global_first,
      "the first token sees all and is seen by all; blocks and steps begin after it");
  }
};

}  // namespace lra::mixers
