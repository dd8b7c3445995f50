#include "kernels/feature_attention/feature_attention_tiles.h"

namespace lra::kernels::LRA_ISA::emulated {

template <typename T>
FeatureParts<T> feature_parts() {
  return parts_of<TileFeatures<EmulatedTiles>, T>();
}
template FeatureParts<Bf16> feature_parts();

}  // namespace lra::kernels::LRA_ISA::emulated
