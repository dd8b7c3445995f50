// Linear Transformer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct LinearTransformerConfig {
  static constexpr LayerSpec kSpec = {.name = "linear_transformer",
                                      .title = "Linear Transformer",
                                      .paper = "Katharopoulos et al. 2020, arXiv:2006.16236",
                                      .family = "linear attention",
                                      .cost = "L E",
                                      .facts = {.attention_weights = true}};
  double eps = 1e-6;
  bool causal = false;
  void fields(auto& f) {
    f("eps", eps, "added to the denominator", between(0, 1));
    f("causal", causal, "no token attends to a later one");
  }
};

}  // namespace lra::mixers
