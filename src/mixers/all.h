// The table of mixers: those of the paper in the order of its Table 1, then later ones. A layer
// NAME here is a struct NAMEConfig in specs/, and a class NAME that kMakeNAME makes
// (sequence_layer.h).
#pragma once

#include <array>
#include <string>

#include "mixers/layer_spec.h"
#include "mixers/specs/bigbird.h"
#include "mixers/specs/chordmixer.h"
#include "mixers/specs/gated_deltanet.h"
#include "mixers/specs/gla.h"
#include "mixers/specs/hgrn2.h"
#include "mixers/specs/linear_rnn.h"
#include "mixers/specs/linear_transformer.h"
#include "mixers/specs/linformer.h"
#include "mixers/specs/linoss.h"
#include "mixers/specs/local.h"
#include "mixers/specs/long_conv.h"
#include "mixers/specs/longformer.h"
#include "mixers/specs/lru.h"
#include "mixers/specs/mamba.h"
#include "mixers/specs/mamba2.h"
#include "mixers/specs/mega.h"
#include "mixers/specs/min_gru.h"
#include "mixers/specs/mlstm.h"
#include "mixers/specs/performer.h"
#include "mixers/specs/reformer.h"
#include "mixers/specs/retnet.h"
#include "mixers/specs/rg_lru.h"
#include "mixers/specs/rwkv7.h"
#include "mixers/specs/s4d.h"
#include "mixers/specs/s5.h"
#include "mixers/specs/sinkhorn.h"
#include "mixers/specs/sparse_transformer.h"
#include "mixers/specs/synthesizer.h"
#include "mixers/specs/transformer.h"

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
  USE(LinearRnn)            \
  USE(Mega)                 \
  USE(Mamba)                \
  USE(Mamba2)               \
  USE(GatedDeltaNet)        \
  USE(Rwkv7)                \
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
