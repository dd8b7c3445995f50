// Helpers that the dense oracles of several mixers share.
#pragma once

#include "mixers/every_mixer_test.h"
#include "ops/dense_attention.h"

namespace lra::mixers {

inline int64_t setting(const OracleInput& in, const char* name) {
  return std::get<int64_t>(in.config.find(name)->value);
}

// Part `part` of a projection [parts * H * E, D] applied to x: [B, L, H, E].
inline at::Tensor heads_of(const OracleInput& in, const char* parameter, int64_t part) {
  const int64_t width = in.shape.attention.heads * in.shape.attention.head_dim;
  const at::Tensor weight = in.parameters.at(parameter).narrow(0, part * width, width);
  return at::einsum("bld,nd->bln", {in.x_BLD, weight})
      .reshape({in.x_BLD.size(0), in.x_BLD.size(1), in.shape.attention.heads,
                in.shape.attention.head_dim});
}

inline at::Tensor merge_heads(const OracleInput& in, const at::Tensor& y_BLHE) {
  return at::einsum("bln,dn->bld", {y_BLHE.flatten(2), in.parameters.at("output.weight")});
}

inline at::Tensor self_attention(const OracleInput& in, const at::Tensor& allowed_LL) {
  const at::Tensor allowed = ops::masks_allow(allowed_LL.unsqueeze(0).unsqueeze(0),
                                              {.keys = in.valid_BL, .queries = in.valid_BL});
  return merge_heads(
      in, ops::dense_attention(heads_of(in, "qkv.weight", 0), heads_of(in, "qkv.weight", 1),
                               heads_of(in, "qkv.weight", 2), allowed, in.dropout));
}

}  // namespace lra::mixers
