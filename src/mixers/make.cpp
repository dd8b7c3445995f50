#include "mixers/sequence_layer.h"

namespace lra::mixers {

std::shared_ptr<SequenceLayer> LayerSpec::make(const layers::Initializer& init,
                                               const ConfigTable& config,
                                               const LayerShape& shape) const {
#define LRA_MAKE_LAYER(Name) \
  if (name == k##Name.name) return kMake##Name(init, config, shape);
  LRA_ALL_MIXERS(LRA_MAKE_LAYER)
  return kMakePythonLayer(init, config, shape);
}

}  // namespace lra::mixers
