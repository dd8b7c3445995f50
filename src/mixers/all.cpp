#include "mixers/all.h"

namespace lra::mixers {

const MixerSpec& find_mixer(const std::string& name) {
  for (const MixerSpec* spec : kAllMixers) {
    if (spec->name == name) return *spec;
  }
  throw Error({.where = "",
               .what = "unknown model '" + name + "'",
               .expected = "",
               .advice = suggestion(name, mixer_names())});
}

std::vector<std::string> mixer_names() {
  std::vector<std::string> names;
  for (const MixerSpec* spec : kAllMixers) names.emplace_back(spec->name);
  return names;
}

}  // namespace lra::mixers
