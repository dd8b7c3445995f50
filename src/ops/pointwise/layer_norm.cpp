#include "ops/pointwise/layer_norm.h"

#include "kernels/pointwise/layer_norm.h"
#include "ops/composed.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Three layer_norm_forward_impl(const Tensor& x_in, const Tensor& weight, const Tensor& bias,
                              double eps) {
  const Tensor x = x_in.contiguous();
  const int64_t columns = weight.numel();
  LRA_CHECK(weight.is_contiguous() && bias.is_contiguous() && columns > 0);
  LRA_CHECK_EQ(bias.numel(), columns);
  LRA_CHECK_EQ(x.size(-1), columns);
  auto of_rows = x.sizes().vec();
  of_rows.back() = 1;
  Tensor y = at::empty_like(x), mean = at::empty(of_rows, x.options().dtype(wide_type(x))),
         rstd = at::empty_like(mean);
  with_float_type(x, "lra::layer_norm_forward", [&](auto zero) {
    using T = decltype(zero);
    using W = kernels::Wide<T>;
    kernels::layer_norm_forward<T>({x.numel() / columns, columns, eps, const_data<T>(x),
                                    const_data<W>(weight), const_data<W>(bias), mutable_data<T>(y),
                                    mutable_data<W>(mean), mutable_data<W>(rstd)});
  });
  return {y, mean, rstd};
}

Three layer_norm_backward_impl(const Tensor& grad_in, const Tensor& x, const Tensor& mean,
                               const Tensor& rstd, const Tensor& weight) {
  const Tensor grad = grad_in.contiguous();
  LRA_CHECK(x.is_contiguous() && weight.is_contiguous());
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  Tensor grad_x = at::empty_like(x), grad_weight = at::empty_like(weight),
         grad_bias = at::empty_like(weight);
  with_float_type(x, "lra::layer_norm_backward", [&](auto zero) {
    using T = decltype(zero);
    using W = kernels::Wide<T>;
    const int64_t columns = weight.numel();
    kernels::layer_norm_backward<T>({x.numel() / columns, columns, const_data<T>(grad),
                                     const_data<T>(x), const_data<W>(mean), const_data<W>(rstd),
                                     const_data<W>(weight), mutable_data<T>(grad_x),
                                     mutable_data<W>(grad_weight), mutable_data<W>(grad_bias)});
  });
  return {grad_x, grad_weight, grad_bias};
}

Tensor composed_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return at::layer_norm(x.to(wide_type(x)), weight.sizes(), weight, bias, eps).to(x.scalar_type());
}

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, double eps) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const LayerNormValues values = layer_norm_forward(x, weight, bias, eps);
    ctx->save_for_backward({x, weight, bias, values.mean, values.rstd});
    ctx->saved_data["eps"] = eps;
    return values.y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    if (at::GradMode::is_enabled()) {
      const double eps = ctx->saved_data["eps"].toDouble();
      return composed_gradients(
          "lra::layer_norm",
          [eps](const auto& in) {
            return variable_list{composed_layer_norm(in[0], in[1], in[2], eps)};
          },
          {saved[0], saved[1], saved[2]}, grads, 4);
    }
    const auto of =
        layer_norm_backward(grads[0], saved[0].contiguous(), saved[3], saved[4], saved[1]);
    return {of.x, of.weight, of.bias, Tensor()};
  }
};

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  static const auto op =
      find_op<Tensor(const Tensor&, const Tensor&, const Tensor&, double)>("lra::layer_norm");
  return op.call(x, weight, bias, eps);
}

LayerNormValues layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   double eps) {
  static const auto op = find_op<Three(const Tensor&, const Tensor&, const Tensor&, double)>(
      "lra::layer_norm_forward");
  auto [y, mean, rstd] = op.call(x, weight, bias, eps);
  return {y, mean, rstd};
}

LayerNormGrads layer_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& weight) {
  static const auto op =
      find_op<Three(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&)>(
          "lra::layer_norm_backward");
  auto [grad_x, grad_weight, grad_bias] = op.call(grad, x, mean, rstd, weight);
  return {grad_x, grad_weight, grad_bias};
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("layer_norm(Tensor x, Tensor weight, Tensor bias, float eps=1e-6) -> Tensor",
        composed_layer_norm);
  m.def(
      "layer_norm_forward(Tensor x, Tensor weight, Tensor bias, float eps) -> (Tensor, Tensor, "
      "Tensor)");
  m.def(
      "layer_norm_backward(Tensor grad, Tensor x, Tensor mean, Tensor rstd, Tensor weight) -> "
      "(Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("layer_norm", [](const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
    return std::get<0>(layer_norm_forward_impl(x, weight, bias, eps));
  });
  m.impl("layer_norm_forward", layer_norm_forward_impl);
  m.impl("layer_norm_backward", layer_norm_backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("layer_norm", [](const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
    return LayerNormFunction::apply(x, weight, bias, eps);
  });
}

}  // namespace lra::ops
