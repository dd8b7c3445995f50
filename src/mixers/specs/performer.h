// Performer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct PerformerConfig {
  static constexpr LayerSpec kSpec = {
      .name = "performer",
      .title = "Performer",
      .paper = "Choromanski et al. 2021, arXiv:2009.14794",
      .family = "linear attention",
      .cost = "L m",
      .facts = {.attention_weights = true, .draws_in_training = true}};
  std::string features = "softmax";
  int64_t num_features = 256;
  std::string norms = "gaussian";
  int64_t redraw = 0;
  bool causal = false;
  void fields(auto& f) {
    f("features", features,
      "softmax: FAVOR+ random features; relu: relu(x) + 1e-3, which has no other settings",
      one_of({"softmax", "relu"}));
    f("num_features", num_features, "random features of each head", between(1, 65536));
    f("norms", norms,
      "lengths of the random rows; gaussian: those of Gaussian vectors; fixed: sqrt of the head "
      "width",
      one_of({"gaussian", "fixed"}));
    f("redraw", redraw, "training steps after which features are redrawn; 0: never", at_least(0));
    f("causal", causal, "no token attends to a later one");
  }
};

}  // namespace lra::mixers
