// Attention by feature maps: the sums over keys are formed once, so cost and memory are linear in
// the length.
#pragma once

#include <torch/torch.h>

namespace lra::ops {

// o_i = phi_q_i (sum_j phi_k_j^T v_j) / (phi_q_i . sum_j phi_k_j + eps) (Katharopoulos et al. 2020,
// equation 6). phi_q [B, L, H, R], phi_k [B, S, H, R], v [B, S, H, E] -> [B, L, H, E]; rows of
// phi_k where mask (uint8 [B, S], may be undefined) is 0 take no part. Differentiable.
at::Tensor feature_attention(const at::Tensor& phi_q_BLHR, const at::Tensor& phi_k_BSHR,
                             const at::Tensor& v_BSHE, const at::Tensor& mask_BS, double eps);

}  // namespace lra::ops
