// Helpers that the dense oracles of several mixers share.
#pragma once

#include "mixers/every_mixer_test.h"
#include "ops/attention/dense_attention.h"

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

// layers::GatedOutput, which is called "output" in the mixer.
inline at::Tensor gated_output(const OracleInput& in, const at::Tensor& y,
                               const std::string& kind) {
  const at::Tensor g = at::gelu(y, "tanh");
  if (kind == "none") return g;
  const at::Tensor z = at::linear(g, in.parameters.at("output.linear.weight"),
                                  in.parameters.at("output.linear.bias"));
  if (kind == "glu") return z.chunk(2, -1)[0] * z.chunk(2, -1)[1].sigmoid();
  if (kind == "linear") return z;
  return (kind == "half_glu1" ? g : y) * z.sigmoid();
}

// Real and imaginary parts along an axis.
inline at::Tensor complex_planes(const at::Tensor& t, int64_t axis) {
  return at::complex(t.select(axis, 0), t.select(axis, 1));
}

// y = sum over directions of Re(C_k x_k) + skip u with the states x_k of poles a [P] and input
// matrix b [P, D] by an L x L matrix of powers for each; c [D, K, P]. All complex.
inline at::Tensor dense_state_space(const OracleInput& in, const at::Tensor& a, const at::Tensor& b,
                                    const at::Tensor& c) {
  const at::Tensor u = in.x_BLD * in.valid_BL.unsqueeze(-1).to(at::kDouble);
  const at::Tensor v = at::einsum("bld,pd->blp", {at::complex(u, at::zeros_like(u)), b});
  const int64_t length = u.size(1);
  const at::Tensor lag = at::arange(length).unsqueeze(1) - at::arange(length);
  at::Tensor y = in.parameters.at("skip") * u;
  for (int64_t k = 0; k < c.size(1); ++k) {
    const at::Tensor steps = k == 0 ? lag : -lag;
    const at::Tensor powers =
        a.view({-1, 1, 1}).pow(steps.clamp_min(0).to(at::kDouble)) * steps.ge(0).to(at::kDouble);
    const at::Tensor x = at::einsum("pij,bjp->bip", {powers, v});
    y = y + at::real(at::einsum("blp,dp->bld", {x, c.select(1, k)}));
  }
  return y;
}

}  // namespace lra::mixers
