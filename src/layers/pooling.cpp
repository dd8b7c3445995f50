#include "layers/pooling.h"

#include "ops/precision.h"
#include "ops/product.h"

namespace lra::layers {
namespace {

// A product gives back the type of its factors, so a bfloat16 sum is rounded by it: there the
// masked values are summed instead.
at::Tensor masked_sum(const at::Tensor& x_BLD, const at::Tensor& mask_BL, at::ScalarType type) {
  if (x_BLD.scalar_type() == type) return ops::product(mask_BL.unsqueeze(1), x_BLD).squeeze(1);
  return (x_BLD * mask_BL.unsqueeze(2)).sum(1, false, type);
}

}  // namespace

at::Tensor pool(const at::Tensor& x_BLD, const at::Tensor& mask_BL, const std::string& pooling) {
  const at::ScalarType type = ops::wide_type(x_BLD);
  if (pooling != "mean") return x_BLD.select(1, 0).to(type);
  if (!mask_BL.defined()) return x_BLD.mean(1, false, type);
  const at::Tensor sum_BD = masked_sum(x_BLD, mask_BL.to(x_BLD.scalar_type()), type);
  return sum_BD / mask_BL.to(type).sum(1, true).clamp_min(1);
}

at::Tensor pair_features(const at::Tensor& pooled, const std::string& kind) {
  const auto towers = pooled.view({pooled.size(0) / 2, 2, pooled.size(1)}).unbind(1);
  if (kind == "concat") return at::cat({towers[0], towers[1]}, 1);
  return at::cat({towers[0], towers[1], towers[0] * towers[1], towers[0] - towers[1]}, 1);
}

}  // namespace lra::layers
