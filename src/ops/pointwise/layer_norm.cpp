#include "ops/pointwise/layer_norm.h"

#include "ops/fused_function.h"
#include "ops/pointwise/row_norm_problem.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

Three layer_norm_forward_impl(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              double eps) {
  const RowNormForward norm(x, weight, bias, eps, /*centered=*/true);
  with_float_type(x, "lra::layer_norm_forward",
                  [&]<typename T>(T) { kernels::layer_norm_forward<T>(norm.problem<T>()); });
  return {norm.y, norm.mean, norm.rstd};
}

Tensor layer_norm_impl(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return std::get<0>(layer_norm_forward_impl(x, weight, bias, eps));
}

Three layer_norm_backward_impl(const Tensor& grad, const Tensor& x, const Tensor& mean,
                               const Tensor& rstd, const Tensor& weight,
                               const MaybeTensor& beside) {
  const RowNormGradients norm(grad, x, mean, rstd, weight, /*centered=*/true, /*has_bias=*/true,
                              beside);
  with_float_type(x, "lra::layer_norm_backward",
                  [&]<typename T>(T) { kernels::layer_norm_backward<T>(norm.problem<T>()); });
  return {norm.of_x, norm.of_weight, norm.of_bias};
}

Tensor composed_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return at::layer_norm(x.to(wide_type(x)), weight.sizes(), weight, bias, eps).to(x.scalar_type());
}

struct LayerNormFunction : FusedFunction<LayerNormFunction, composed_layer_norm> {
  static constexpr const char* kName = "lra::layer_norm";
  static constexpr bool kOfStream = true;

  static Three fused(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
    return dispatch<"lra::layer_norm_forward", layer_norm_forward_impl>(x, weight, bias, eps);
  }
  static Three gradients(const Tensor& grad, const variable_list& kept, const Tensor& x,
                         const Tensor& weight, const Tensor&, double) {
    return dispatch<"lra::layer_norm_backward", layer_norm_backward_impl>(
        grad, x, kept[0], kept[1], weight, optional_tensor(kept[2]));
  }
};

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return dispatch<"lra::layer_norm", layer_norm_impl>(x, weight, bias, eps);
}

std::pair<Tensor, Tensor> layer_norm_of_stream(const Tensor& x, const Tensor& weight,
                                               const Tensor& bias, double eps) {
  if (!at::GradMode::is_enabled()) return {layer_norm(x, weight, bias, eps), x};
  const auto both = LayerNormFunction::apply(x, weight, bias, eps);
  return {both[0], both[1]};
}

LayerNormValues layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   double eps) {
  auto [y, mean, rstd] =
      dispatch<"lra::layer_norm_forward", layer_norm_forward_impl>(x, weight, bias, eps);
  return {y, mean, rstd};
}

LayerNormGrads layer_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& weight, const Tensor& beside) {
  auto [grad_x, grad_weight, grad_bias] =
      dispatch<"lra::layer_norm_backward", layer_norm_backward_impl>(grad, x, mean, rstd, weight,
                                                                     optional_tensor(beside));
  return {grad_x, grad_weight, grad_bias};
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("layer_norm(Tensor x, Tensor weight, Tensor bias, float eps=1e-6) -> Tensor",
        composed_layer_norm);
  m.def(
      "layer_norm_forward(Tensor x, Tensor weight, Tensor bias, float eps) -> (Tensor, Tensor, "
      "Tensor)");
  m.def(
      "layer_norm_backward(Tensor grad, Tensor x, Tensor mean, Tensor rstd, Tensor weight, Tensor? "
      "beside=None) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("layer_norm", layer_norm_impl);
  m.impl("layer_norm_forward", layer_norm_forward_impl);
  m.impl("layer_norm_backward", layer_norm_backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("layer_norm", [](const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
    return LayerNormFunction::apply(x, weight, bias, eps)[0];
  });
}

}  // namespace lra::ops
