// The table of mixers: those of the paper in the order of its Table 1, then later ones. A layer
// NAME here is a struct NAMEConfig in specs/, and a class NAME that kMakeNAME makes
// (sequence_layer.h).
#pragma once

#include <array>
#include <string>

#include "mixers/layer_spec.h"

namespace lra::mixers {

#define LRA_ALL_MIXERS(USE) \
  USE(Transformer)          \
  USE(Local)                \
  USE(SparseTransformer)    \
  USE(Longformer)           \
  USE(Linformer)            \
  USE(Reformer)             \
  USE(Sinkhorn)             \
  USE(Synthesizer)          \
  USE(BigBird)              \
  USE(LinearTransformer)    \
  USE(Performer)            \
  USE(S4d)                  \
  USE(LongConv)             \
  USE(ChordMixer)           \
  USE(S5)                   \
  USE(Lru)                  \
  USE(Linoss)               \
  USE(Mega)                 \
  USE(Mamba)                \
  USE(Mamba2)               \
  USE(GatedDeltaNet)        \
  USE(MinGru)               \
  USE(RetNet)               \
  USE(Gla)                  \
  USE(Hgrn2)                \
  USE(MLstm)                \
  USE(RgLru)

#define LRA_DECLARE_SPEC(Name) extern const LayerSpec k##Name;
#define LRA_SPEC_ADDRESS(Name) &k##Name,
LRA_ALL_MIXERS(LRA_DECLARE_SPEC)
inline constexpr std::array kAllMixers = {LRA_ALL_MIXERS(LRA_SPEC_ADDRESS)};

// A name with a colon is that of a Python class (python_layer.h).
// Throws "unknown model 'linfomer'; did you mean 'linformer'?".
const LayerSpec& find_mixer(const std::string& name);
std::vector<std::string> mixer_names();

}  // namespace lra::mixers
