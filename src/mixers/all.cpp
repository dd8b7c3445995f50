#include "mixers/all.h"

#include "mixers/python_layer.h"

namespace lra::mixers {

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
