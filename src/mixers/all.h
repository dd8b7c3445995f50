// The table of mixers: those of the paper in the order of its Table 1, then later ones.
#pragma once

#include <array>

#include "mixers/sequence_layer.h"

namespace lra::mixers {

extern const LayerSpec kTransformer, kLocal, kSparseTransformer, kLongformer, kLinformer, kReformer,
    kSinkhorn, kSynthesizer, kBigBird, kLinearTransformer, kPerformer, kS4d, kLongConv, kChordMixer,
    kS5, kLru, kMega, kMamba, kMamba2, kGatedDeltaNet, kMinGru, kRetNet, kGla, kRgLru;

inline constexpr std::array kAllMixers = {&kTransformer,
                                          &kLocal,
                                          &kSparseTransformer,
                                          &kLongformer,
                                          &kLinformer,
                                          &kReformer,
                                          &kSinkhorn,
                                          &kSynthesizer,
                                          &kBigBird,
                                          &kLinearTransformer,
                                          &kPerformer,
                                          &kS4d,
                                          &kLongConv,
                                          &kChordMixer,
                                          &kS5,
                                          &kLru,
                                          &kMega,
                                          &kMamba,
                                          &kMamba2,
                                          &kGatedDeltaNet,
                                          &kMinGru,
                                          &kRetNet,
                                          &kGla,
                                          &kRgLru};

// A name with a colon is that of a Python class (python_layer.h).
// Throws "unknown model 'linfomer'; did you mean 'linformer'?".
const LayerSpec& find_mixer(const std::string& name);
std::vector<std::string> mixer_names();

}  // namespace lra::mixers
