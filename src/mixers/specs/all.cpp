#include "mixers/all.h"

#include "mixers/python_layer.h"

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
