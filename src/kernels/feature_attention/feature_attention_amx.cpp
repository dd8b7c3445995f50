#include "kernels/feature_attention/feature_attention_tiles.h"
#include "kernels/simd/tiles_amx.h"

namespace lra::kernels::amx {

template <typename T>
FeatureParts<T> feature_parts() {
  return parts_of<TileFeatures<HardwareTiles>, T>();
}
template FeatureParts<Bf16> feature_parts();

}  // namespace lra::kernels::amx
