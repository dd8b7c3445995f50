// LinOSS: settings and facts.
#pragma once

#include "layers/settings.h"
#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kLinossGroups[] = {
    {.name = "ssm", .what = "frequencies and steps of the oscillators", .learning_rate = 1e-3},
    {.name = "b", .what = "input matrix of the recurrence", .learning_rate = 1e-3}};

struct LinossConfig {
  static constexpr LayerSpec kSpec = {.name = "linoss",
                                      .title = "LinOSS",
                                      .paper = "Rusch and Rus 2024, arXiv:2410.03943",
                                      .family = "state space",
                                      .cost = "L N",
                                      .groups = kLinossGroups};
  std::string discretization = "im", output = "glu";
  int64_t states = 64;
  bool bidirectional = true;
  void fields(auto& f) {
    f("states", states, "oscillators of the layer, driven by complex inputs", between(1, 65536));
    f("discretization", discretization,
      "im: implicit, oscillations fade; imex: implicit and explicit, they never do",
      one_of({"im", "imex"}));
    f("bidirectional", bidirectional, "a second direction from the end, with its own columns of C");
    f("output", output,
      "after the recurrence, GELU and the block's dropout: a gated linear unit, one of "
      "S5's gates, a linear layer, or nothing",
      one_of(layers::gated_outputs()));
  }
};

}  // namespace lra::mixers
