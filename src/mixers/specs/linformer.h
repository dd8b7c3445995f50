// Linformer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct LinformerConfig {
  static constexpr LayerSpec kSpec = {.name = "linformer",
                                      .title = "Linformer",
                                      .paper = "Wang et al. 2020, arXiv:2006.04768",
                                      .family = "low rank",
                                      .cost = "L k",
                                      .facts = {.attention_dropout = true}};
  int64_t rank = 256;
  void fields(auto& f) {
    f("rank", rank, "length of the projected keys and values", between(1, kMostTokens));
  }
};

}  // namespace lra::mixers
