// Gated DeltaNet: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kGatedDeltaNetGroups[] = {
    {.name = "ssm", .what = "rates and steps of the decay, without weight decay"}};

struct GatedDeltaNetConfig {
  static constexpr LayerSpec kSpec = {.name = "gated_deltanet",
                                      .title = "Gated DeltaNet",
                                      .paper = "Yang et al. 2024, arXiv:2412.06464",
                                      .family = "delta rule",
                                      .cost = "L K",
                                      .groups = kGatedDeltaNetGroups};
  int64_t num_heads = 4, key_dim = 0, value_dim = 0, conv_width = 4;
  bool decay = true, gate = true, negative_eigenvalues = false, bidirectional = true;
  double a_max = 16, dt_min = 1e-3, dt_max = 0.1;
  void fields(auto& f) {
    f("num_heads", num_heads, "heads, each with a state of its own", between(1, 4096));
    f("key_dim", key_dim, "width of a key; 0: three quarters of the model's width for all heads",
      between(0, 65536));
    f("value_dim", value_dim, "width of a value; 0: two keys", between(0, 65536));
    f("conv_width", conv_width, "tokens that the convolution sees", between(1, 64));
    f("decay", decay, "the memory decays; without, it is DeltaNet");
    f("gate", gate, "a gate at the output");
    f("negative_eigenvalues", negative_eigenvalues, "writes between 0 and 2 instead of 1");
    f("bidirectional", bidirectional, "half of the heads run from the end of the sequence");
    f("a_max", a_max, "largest initial rate of decay", between(1e-6, 1e6));
    f("dt_min", dt_min, "smallest initial step", between(1e-6, 10));
    f("dt_max", dt_max, "largest initial step", between(1e-6, 10));
  }
};

}  // namespace lra::mixers
