// Long Convolution: settings and facts.
#pragma once

#include "layers/settings.h"
#include "mixers/layer_spec.h"

namespace lra::mixers {

inline constexpr GroupSpec kLongConvGroups[] = {
    {.name = "kernel", .what = "numbers of the kernels", .learning_rate = 1e-3}};

struct LongConvConfig {
  static constexpr LayerSpec kSpec = {.name = "long_conv",
                                      .title = "Long Convolution",
                                      .paper = "Fu et al. 2023, arXiv:2302.06646",
                                      .family = "long convolution",
                                      .cost = "L log L",
                                      .facts = {.draws_in_training = true},
                                      .groups = kLongConvGroups};
  std::string kind = "free", output = "glu";
  bool bidirectional = true;
  int64_t width = 0, scale_dim = 32;
  double squash = 0.001, kernel_dropout = 0, decay_min = 2, decay_max = 2;
  void fields(auto& f) {
    f("kind", kind, "free: every number of the kernel is learned; sgconv: joined scales that decay",
      one_of({"free", "sgconv"}));
    f("bidirectional", bidirectional, "lags in both directions, not only in the past");
    f("width", width, "lags of the kernel; 0: as many as the longest sequence can use",
      between(0, 2 * kMostTokens));
    f("squash", squash, "how much each number of a free kernel is shrunk toward 0", at_least(0));
    f("kernel_dropout", kernel_dropout, "dropout rate for the numbers of the kernel",
      dropout_rate());
    f("scale_dim", scale_dim, "parameters of each scale of sgconv", between(1, kMostTokens));
    f("decay_min", decay_min, "sgconv: ratio of each scale to the next one, in the first channel",
      at_least(0));
    f("decay_max", decay_max, "sgconv: the same in the last channel", at_least(0));
    f("output", output, "what follows GELU: gates, a linear layer or none",
      one_of(layers::gated_outputs()));
  }
};

}  // namespace lra::mixers
