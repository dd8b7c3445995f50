// ChordMixer: settings and facts.
#pragma once

#include "mixers/layer_spec.h"

namespace lra::mixers {

struct ChordMixerConfig {
  static constexpr LayerSpec kSpec = {.name = "chordmixer",
                                      .title = "ChordMixer",
                                      .paper = "Khalitov et al. 2023, arXiv:2206.05852",
                                      .family = "rotation",
                                      .cost = "L",
                                      .facts = {.bound_to_length = true}};
  int64_t hidden = 0;
  void fields(auto& f) {
    f("hidden", hidden, "hidden width of the MLP; 0: model.embed_dim", between(0, 262144));
  }
};

}  // namespace lra::mixers
