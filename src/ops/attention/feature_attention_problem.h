// The arguments of attention by feature maps as its kernels take them, on every device.
#pragma once

#include <string>
#include <vector>

#include "kernels/feature_attention/feature_attention.h"
#include "ops/dispatch.h"

namespace lra::ops {

inline kernels::FeatureMap feature_map_named(c10::string_view name) {
  if (name == "elu") return kernels::FeatureMap::kElu;
  if (name == "relu") return kernels::FeatureMap::kRelu;
  throw Error({.where = "lra::packed_feature_attention",
               .what = "unknown features '" + std::string(name) + "'",
               .expected = "elu or relu"});
}

// Checks qkv [B, L, 3, H, E] and a mask of valid positions [B, L].
inline void check_feature_attention(const Tensor& qkv, const MaybeTensor& mask) {
  LRA_CHECK(qkv.dim() == 5 && qkv.size(2) == 3);
  check_mask(mask, qkv.size(0), qkv.size(1));
}

template <typename T>
kernels::FeatureAttention<T> feature_attention_problem(const Tensor& qkv, c10::string_view features,
                                                       const MaybeTensor& mask, double offset,
                                                       double eps) {
  return {.batch = qkv.size(0),
          .length = qkv.size(1),
          .heads = qkv.size(3),
          .width = qkv.size(4),
          .map = feature_map_named(features),
          .offset = offset,
          .eps = eps,
          .qkv = const_data<T>(qkv),
          .mask = mask ? mask->const_data_ptr<uint8_t>() : nullptr};
}

// [B, L, H, E] and [B, H, E, columns of a sum].
inline std::vector<int64_t> feature_out_shape(const Tensor& qkv) {
  return {qkv.size(0), qkv.size(1), qkv.size(3), qkv.size(4)};
}
inline std::vector<int64_t> feature_sums_shape(const Tensor& qkv) {
  return {qkv.size(0), qkv.size(3), qkv.size(4), kernels::feature_sum_columns(qkv.size(4))};
}

}  // namespace lra::ops
