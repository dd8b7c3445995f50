#include "ops/pointwise/layer_norm.h"

#include "ops/composed.h"
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

// The norm of a stream, and the stream: the gradients of both meet in one pass.
struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, double eps) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const LayerNormValues values = layer_norm_forward(x, weight, bias, eps);
    ctx->save_for_backward({x, weight, bias, values.mean, values.rstd});
    ctx->saved_data["eps"] = eps;
    ctx->set_materialize_grads(false);
    return {values.y, x};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    if (at::GradMode::is_enabled()) {
      const double eps = ctx->saved_data["eps"].toDouble();
      return composed_gradients(
          "lra::layer_norm",
          [eps](const auto& in) {
            return variable_list{composed_layer_norm(in[0], in[1], in[2], eps), in[0]};
          },
          {saved[0], saved[1], saved[2]}, grads, 4);
    }
    if (!grads[0].defined()) return {grads[1], Tensor(), Tensor(), Tensor()};
    const auto of = layer_norm_backward(grads[0], saved[0], saved[3], saved[4], saved[1], grads[1]);
    return {of.x, of.weight, of.bias, Tensor()};
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
