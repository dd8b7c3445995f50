// RWKV-7: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kRwkv7Groups[] = {
    {.name = "ssm", .what = "biases of decays and rates, without weight decay"}};

struct Rwkv7Config {
  static constexpr LayerSpec kSpec = {.name = "rwkv7",
                                      .title = "RWKV-7",
                                      .paper = "Peng et al. 2025, arXiv:2503.14456",
                                      .family = "delta rule",
                                      .cost = "L K",
                                      .groups = kRwkv7Groups};
  int64_t head_channels = 0, rank = 0, gate_rank = 0;
  bool bidirectional = true;
  void fields(auto& f) {
    f("head_channels", head_channels,
      "width of a key and of a value; 0: a divisor of the model's width of at most a quarter of "
      "it, or a half, and 64",
      between(0, 65536));
    f("rank", rank,
      "rank of what decays and rates see of a token; 0: 2.5 sqrt(D), a multiple of 32",
      between(0, 65536));
    f("gate_rank", gate_rank, "rank of the output gate; 0: 5 sqrt(D), a multiple of 32",
      between(0, 65536));
    f("bidirectional", bidirectional, "half of the heads run from the end of the sequence");
  }
};

}  // namespace lra::mixers
