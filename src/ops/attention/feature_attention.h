// Self-attention by feature maps: the sums over keys are formed once, so cost and memory are linear
// in the length.
#pragma once

#include "kernels/feature_attention/feature_attention.h"
#include "ops/libtorch.h"

namespace lra::ops {

// Feature map of queries and keys, and the addend of a denominator.
struct FeatureAttentionOptions {
  kernels::FeatureMap map = kernels::FeatureMap::kElu;
  double offset = 0;  // of kRelu
  double eps = 0;
};

// o_i = phi(q_i) (sum_j phi(k_j)^T v_j) / (phi(q_i) . sum_j phi(k_j) + eps) (Katharopoulos et al.
// 2020, equation 6). qkv [B, L, 3, H, E] -> [B, L, H, E]; keys where mask (uint8 [B, L], may be
// undefined) is 0 are ignored; a query that sees none gets 0. float32, float64 or bfloat16, whose
// sums are float32. The backward pass keeps qkv, the result and [B, H, E, E + 1 to 16] sums.
// CheckFailure for other shapes or types, and unless the mask is contiguous.
Tensor packed_feature_attention(const Tensor& qkv_BL3HE, const Tensor& mask_BL,
                                const FeatureAttentionOptions& options);

// The same with sums over j <= i (Katharopoulos et al. 2020, equations 8 and 9), by the scan of
// ops/scan/matrix_scan.h, which keeps the features.
Tensor causal_feature_attention(const Tensor& qkv_BL3HE, const Tensor& mask_BL,
                                const FeatureAttentionOptions& options);
// The same for features q and k [B, L, H, R], not negative, and v [B, L, H, E].
Tensor causal_attention_of_features(const Tensor& q_BLHR, const Tensor& k_BLHR,
                                    const Tensor& v_BLHE, const Tensor& mask_BL, double eps = 0);

}  // namespace lra::ops
