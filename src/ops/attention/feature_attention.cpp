#include "ops/attention/feature_attention.h"

#include "ops/attention/feature_attention_problem.h"
#include "ops/fused_function.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan.h"

namespace lra::ops {
namespace {

using kernels::FeatureMap;

const char* name_of(FeatureMap map) { return map == FeatureMap::kElu ? "elu" : "relu"; }

std::tuple<Tensor, Tensor> feature_attention_forward_impl(const Tensor& qkv_in,
                                                          c10::string_view features,
                                                          const MaybeTensor& mask, double offset,
                                                          double eps) {
  check_feature_attention(qkv_in, mask);
  const Tensor qkv = qkv_in.contiguous();
  const Tensor out = at::empty(feature_out_shape(qkv), qkv.options());
  const Tensor sums = at::empty(feature_sums_shape(qkv), qkv.options().dtype(wide_type(qkv)));
  with_float_type(qkv, "lra::packed_feature_attention", [&]<typename T>(T) {
    kernels::feature_attention_forward<T>(
        {.problem = feature_attention_problem<T>(qkv, features, mask, offset, eps),
         .out = mutable_data<T>(out),
         .sums = sums.mutable_data_ptr<kernels::Wide<T>>()});
  });
  return {out, sums};
}

Tensor feature_attention_backward_impl(const Tensor& grad_in, const Tensor& qkv_in,
                                       const Tensor& out, const Tensor& sums,
                                       c10::string_view features, const MaybeTensor& mask,
                                       double offset, double eps) {
  check_feature_attention(qkv_in, mask);
  const Tensor qkv = qkv_in.contiguous(), grad = grad_in.contiguous();
  LRA_CHECK(out.sizes() == feature_out_shape(qkv) && out.is_contiguous());
  LRA_CHECK(sums.sizes() == feature_sums_shape(qkv) && sums.is_contiguous());
  LRA_CHECK_EQ(grad.sizes(), out.sizes());
  Tensor grad_qkv = at::empty_like(qkv);
  with_float_type(qkv, "lra::packed_feature_attention", [&]<typename T>(T) {
    kernels::feature_attention_backward<T>(
        {.problem = feature_attention_problem<T>(qkv, features, mask, offset, eps),
         .out = const_data<T>(out),
         .sums = sums.const_data_ptr<kernels::Wide<T>>(),
         .grad = const_data<T>(grad),
         .grad_qkv = mutable_data<T>(grad_qkv)});
  });
  return grad_qkv;
}

// Not at::elu, whose bits depend on the number of threads (docs/numerics.md).
Tensor features_of(const Tensor& x, FeatureMap map, double offset) {
  return map == FeatureMap::kElu ? at::where(x > 0, x + 1, x.clamp_max(0).exp())
                                 : at::relu(x) + offset;
}

Tensor composed_feature_attention(const Tensor& qkv_BL3HE, c10::string_view features,
                                  const MaybeTensor& mask_BL, double offset, double eps) {
  check_feature_attention(qkv_BL3HE, mask_BL);
  const auto phi = [&](const Tensor& x) {
    return features_of(x, feature_map_named(features), offset);
  };
  const auto in = qkv_BL3HE.to(wide_type(qkv_BL3HE)).unbind(2);
  const Tensor q = phi(in[0]);
  Tensor k = phi(in[1]);
  if (mask_BL) k = k.masked_fill(mask_BL->eq(0).unsqueeze(2).unsqueeze(3), 0);
  const Tensor sums_BHRE = at::einsum("bshr,bshe->bhre", {k, in[2]});
  const Tensor total_BLH1 = at::einsum("blhr,bhr->blh", {q, k.sum(1)}).unsqueeze(3) + eps;
  const Tensor out =
      at::einsum("blhr,bhre->blhe", {q, sums_BHRE}) / total_BLH1.masked_fill(total_BLH1 == 0, 1);
  return out.to(qkv_BL3HE.scalar_type());
}

std::tuple<Tensor, Tensor> call_forward(const Tensor& qkv, c10::string_view features,
                                        const MaybeTensor& mask, double offset, double eps) {
  return dispatch<"lra::packed_feature_attention_forward", feature_attention_forward_impl>(
      qkv, features, mask, offset, eps);
}

Tensor out_alone(const Tensor& qkv, c10::string_view features, const MaybeTensor& mask,
                 double offset, double eps) {
  return std::get<0>(call_forward(qkv, features, mask, offset, eps));
}

struct FeatureAttentionFunction
    : FusedFunction<FeatureAttentionFunction, composed_feature_attention> {
  static constexpr const char* kName = "lra::packed_feature_attention";
  static constexpr size_t kMask = 1;

  static variable_list fused(const Tensor& qkv, c10::string_view features, const MaybeTensor& mask,
                             double offset, double eps) {
    const auto [out, sums] = call_forward(qkv, features, mask, offset, eps);
    return {out, out, sums};
  }
  static Tensor gradients(const Tensor& grad, const variable_list& kept, const Tensor& qkv,
                          c10::string_view features, const MaybeTensor& mask, double offset,
                          double eps) {
    return dispatch<"lra::packed_feature_attention_backward", feature_attention_backward_impl>(
        grad, qkv, kept[0], kept[1], features, mask, offset, eps);
  }
};

}  // namespace

Tensor packed_feature_attention(const Tensor& qkv, const Tensor& mask,
                                const FeatureAttentionOptions& options) {
  return dispatch<"lra::packed_feature_attention", out_alone>(
      qkv, name_of(options.map), optional_tensor(mask), options.offset, options.eps);
}

Tensor causal_feature_attention(const Tensor& qkv_BL3HE, const Tensor& mask_BL,
                                const FeatureAttentionOptions& options) {
  const auto parts = qkv_BL3HE.unbind(2);
  return causal_attention_of_features(features_of(parts[0], options.map, options.offset),
                                      features_of(parts[1], options.map, options.offset), parts[2],
                                      mask_BL, options.eps);
}

Tensor causal_attention_of_features(const Tensor& q_BLHR, const Tensor& k_BLHR,
                                    const Tensor& v_BLHE, const Tensor& mask_BL, double eps) {
  const int64_t batch = v_BLHE.size(0), length = v_BLHE.size(1), heads = v_BLHE.size(2);
  const Tensor no_decay = at::zeros({1, 1, 1, 1}, v_BLHE.options().dtype(wide_type(v_BLHE)));
  // One more value, 1, whose sum is the denominator.
  const Tensor sums = matrix_scan({.q_BLGK = q_BLHR,
                                   .k_BLGK = k_BLHR,
                                   .v_BLHV = at::constant_pad_nd(v_BLHE, {0, 1}, 1),
                                   .log_decay_BLHK = no_decay.expand({batch, length, heads, 1}),
                                   .mask_BL = mask_BL});
  const auto parts = sums.split_with_sizes({v_BLHE.size(3), 1}, 3);
  return parts[0] / at::where(parts[1] > 0, parts[1] + eps, 1);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "packed_feature_attention(Tensor qkv, str features, Tensor? mask=None, float offset=0.0, "
      "float eps=0.0) -> Tensor",
      composed_feature_attention);
  m.def(
      "packed_feature_attention_forward(Tensor qkv, str features, Tensor? mask, float offset, "
      "float eps) -> (Tensor, Tensor)");
  m.def(
      "packed_feature_attention_backward(Tensor grad, Tensor qkv, Tensor out, Tensor sums, str "
      "features, Tensor? mask, float offset, float eps) -> Tensor");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("packed_feature_attention", out_alone);
  m.impl("packed_feature_attention_forward", feature_attention_forward_impl);
  m.impl("packed_feature_attention_backward", feature_attention_backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("packed_feature_attention", applies<FeatureAttentionFunction>(out_alone));
}

}  // namespace lra::ops
