// LRU: settings and facts.
#pragma once

#include <numbers>

#include "layers/settings.h"
#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kLruGroups[] = {
    {.name = "ssm", .what = "poles of the recurrence and their norms", .learning_rate = 1e-3},
    {.name = "b", .what = "input matrix of the recurrence", .learning_rate = 1e-3}};

struct LruConfig {
  static constexpr LayerSpec kSpec = {.name = "lru",
                                      .title = "LRU",
                                      .paper = "Orvieto et al. 2023, arXiv:2303.06349",
                                      .family = "state space",
                                      .cost = "L N",
                                      .groups = kLruGroups};
  std::string output = "glu";
  int64_t states = 64;
  bool bidirectional = true;
  double r_min = 0, r_max = 1, max_phase = 2 * std::numbers::pi;
  void fields(auto& f) {
    f("states", states, "complex states of the layer", between(1, 65536));
    f("bidirectional", bidirectional, "a second direction from the end, with its own columns of C");
    f("r_min", r_min, "smallest initial absolute value of lambda", between(0, 1));
    f("r_max", r_max, "largest initial absolute value of lambda", between(0, 1));
    f("max_phase", max_phase, "largest initial phase of lambda, in radians",
      between(1e-6, 2 * std::numbers::pi));
    f("output", output,
      "after the recurrence, GELU and the block's dropout: a gated linear unit, one of "
      "S5's gates, a linear layer, or nothing",
      one_of(layers::gated_outputs()));
  }
};

}  // namespace lra::mixers
