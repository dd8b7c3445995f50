// Mega: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct MegaConfig {
  static constexpr LayerSpec kSpec = {.name = "mega",
                                      .title = "Mega",
                                      .paper = "Ma et al. 2023, arXiv:2209.10655",
                                      .family = "gated attention",
                                      .cost = "L^2 or L chunk"};
  int64_t ema_dim = 16, z_dim = 64, v_dim = 128, chunk = 0;
  bool bidirectional = true;
  std::string attention = "softmax";
  void fields(auto& f) {
    f("ema_dim", ema_dim, "states of a channel's moving average, in each direction",
      between(1, 512));
    f("z_dim", z_dim, "width of queries and keys", between(1, 65536));
    f("v_dim", v_dim, "width of values", between(1, 65536));
    f("chunk", chunk, "tokens that see one another; 0: all", between(0, kMostTokens));
    f("bidirectional", bidirectional, "the moving average in both directions");
    f("attention", attention, "function that turns scores into weights",
      one_of({"softmax", "laplace"}));
  }
};

}  // namespace lra::mixers
