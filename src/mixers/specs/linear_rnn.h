// Linear RNN: settings and facts.
#pragma once

#include "layers/settings.h"
#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kLinearRnnGroups[] = {
    {.name = "ssm", .what = "matrix of the recurrence", .learning_rate = 1e-3}};

struct LinearRnnConfig {
  static constexpr LayerSpec kSpec = {.name = "linear_rnn",
                                      .title = "Linear RNN",
                                      .paper = "Orvieto et al. 2023, arXiv:2303.06349, section 3.1",
                                      .family = "linear recurrence",
                                      .cost = "L N^2",
                                      .groups = kLinearRnnGroups};
  std::string output = "glu";
  int64_t states = 64;
  bool bidirectional = true;
  double radius = 0.99;
  void fields(auto& f) {
    f("states", states, "numbers in the state", between(1, 65536));
    f("bidirectional", bidirectional, "a second direction from the end, with its own columns of C");
    f("radius", radius, "initial absolute value of all eigenvalues", between(0, 0.999999));
    f("output", output, "what follows the recurrence, as in lru", one_of(layers::gated_outputs()));
  }
};

}  // namespace lra::mixers
