#include "mixers/all.h"

#include "mixers/python_layer.h"
#include "mixers/specs/bigbird.h"
#include "mixers/specs/chordmixer.h"
#include "mixers/specs/gated_deltanet.h"
#include "mixers/specs/gla.h"
#include "mixers/specs/hgrn2.h"
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
#include "mixers/specs/s4d.h"
#include "mixers/specs/s5.h"
#include "mixers/specs/sinkhorn.h"
#include "mixers/specs/sparse_transformer.h"
#include "mixers/specs/synthesizer.h"
#include "mixers/specs/transformer.h"
namespace lra::mixers {
namespace {

// The spec of a layer with its settings, whose functions follow from them.
template <typename Config>
constexpr LayerSpec with_settings() {
  LayerSpec spec = Config::kSpec;
  spec.describe = [] { return describe_config<Config>(); };
  spec.resolve = [](const ConfigTable& table) { return resolve_config<Config>(table, "mixer"); };
  return spec;
}

}  // namespace

#define LRA_DEFINE_SPEC(Name) constinit const LayerSpec k##Name = with_settings<Name##Config>();
LRA_ALL_MIXERS(LRA_DEFINE_SPEC)

const LayerSpec& find_mixer(const std::string& name) {
  if (is_python_class(name)) return kPythonLayer;
  for (const LayerSpec* spec : kAllMixers) {
    if (spec->name == name) return *spec;
  }
  throw Error({.what = "unknown model '" + name + "'", .advice = suggestion(name, mixer_names())});
}

std::vector<std::string> mixer_names() {
  std::vector<std::string> names;
  for (const LayerSpec* spec : kAllMixers) names.emplace_back(spec->name);
  return names;
}

}  // namespace lra::mixers
