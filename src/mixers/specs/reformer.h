// Reformer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct ReformerConfig {
  static constexpr LayerSpec kSpec = {
      .name = "reformer",
      .title = "Reformer",
      .paper = "Kitaev et al. 2020, arXiv:2001.04451",
      .family = "learned pattern",
      .cost = "L log L",
      .facts = {.attention_weights = true, .attention_dropout = true, .draws_in_training = true}};
  static constexpr int64_t kMostBuckets = 1 << 16;
  int64_t rounds = 2;
  int64_t chunk = 64;
  int64_t buckets = 0;
  bool causal = false;
  void fields(auto& f) {
    f("rounds", rounds, "hash rounds", between(1, 64));
    f("chunk", chunk, "tokens per chunk of the sorted sequence", between(1, kMostTokens));
    f("buckets", buckets, "hash buckets, even; 0: 2 ceil(max length / chunk)",
      between(0, kMostBuckets));
    f("causal", causal, "no token sees a later one");
  }
  void check() const {
    if (buckets % 2 == 0) return;
    throw Error({.where = "mixer.buckets",
                 .what = std::to_string(buckets) + " is odd",
                 .expected = "an even number, or 0",
                 .advice = "buckets come in pairs, one for each side of a random direction"});
  }
};

}  // namespace lra::mixers
