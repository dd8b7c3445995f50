// Helpers that the dense oracles of several mixers share.
#pragma once

#include "mixers/every_mixer_test.h"
#include "ops/attention/dense_attention.h"

namespace lra::mixers {

inline int64_t setting(const OracleInput& in, const char* name) {
  return std::get<int64_t>(in.config.find(name)->value);
}

inline bool is_on(const OracleInput& in, const char* name) {
  const ConfigValue* found = in.config.find(name);
  return found && std::get<bool>(found->value);
}

// bool [L, L]: all pairs of a query and a key, with `causal` those without later keys.
inline at::Tensor pairs_in_order(const OracleInput& in) {
  const int64_t length = in.x_BLD.size(1);
  const at::Tensor all = at::ones({length, length}, at::kBool);
  return is_on(in, "causal") ? all.tril() : all;
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

// t with time turned around for the second of two directions.
inline at::Tensor turned(const at::Tensor& t, int64_t direction) {
  return direction == 0 ? t : t.flip(1);
}

// The sum over j of weight[e, j] times the valid token j positions earlier, and a bias.
inline at::Tensor convolution_oracle(const at::Tensor& x_BLE, const at::Tensor& valid_BL1,
                                     const at::Tensor& weight_EW, const at::Tensor& bias_E) {
  const int64_t length = x_BLE.size(1);
  at::Tensor y = bias_E.expand_as(x_BLE);
  for (int64_t j = 0; j < std::min(weight_EW.size(1), length); ++j) {
    const at::Tensor before = (x_BLE * valid_BL1).narrow(1, 0, length - j);
    y = y + at::constant_pad_nd(before, {0, 0, j, 0}) * weight_EW.select(1, j);
  }
  return y;
}

// h_t = a_t h_{t-1} + v_t
inline at::Tensor gated_states_oracle(const at::Tensor& a, const at::Tensor& v,
                                      const at::Tensor& valid_BL) {
  at::Tensor h = at::zeros({1}, at::kDouble);
  std::vector<at::Tensor> rows;
  for (int64_t t = 0; t < v.size(1); ++t) {
    h = (a.select(1, t) * h + v.select(1, t)) * valid_BL.select(1, t).to(at::kDouble).unsqueeze(1);
    rows.push_back(h);
  }
  return at::stack(rows, 1);
}

// o_t = S_t^T q_t of S~ = a_t S_{t-1}, S_t = S~ + k_t u_t^T, u_t = v_t, or with beta [B, L, H]
// beta_t (v_t - S~^T k_t); q, k and a [B, L, H, K], or a [B, L, H, 1], v [B, L, H, V].
inline at::Tensor matrix_states_oracle(const at::Tensor& q, const at::Tensor& k,
                                       const at::Tensor& v, const at::Tensor& a,
                                       const at::Tensor& beta, const at::Tensor& valid_BL) {
  at::Tensor state = at::zeros({1}, at::kDouble);
  std::vector<at::Tensor> rows;
  for (int64_t t = 0; t < q.size(1); ++t) {
    const at::Tensor key = k.select(1, t).unsqueeze(3);
    const at::Tensor decayed = a.select(1, t).unsqueeze(3) * state;
    at::Tensor u = v.select(1, t).unsqueeze(2);
    if (beta.defined()) {
      u = beta.select(1, t).unsqueeze(2).unsqueeze(3) * (u - (decayed * key).sum(2, true));
    }
    state = (decayed + key * u) * valid_BL.select(1, t).to(at::kDouble).view({-1, 1, 1, 1});
    rows.push_back((state * q.select(1, t).unsqueeze(3)).sum(2));
  }
  return at::stack(rows, 1);
}

inline at::Tensor rms_norm_oracle(const at::Tensor& x, const at::Tensor& weight) {
  return x / (x.square().mean(-1, true) + 1e-5).sqrt() * weight;
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
