#include "ops/convolution_silu.h"

#include "kernels/convolution/short_convolution.h"
#include "ops/composed.h"
#include "ops/even_rows.h"
#include "ops/gate.h"
#include "ops/precision.h"
#include "ops/product.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Mask = std::optional<Tensor>;
using ConvolutionSiluGradients = std::tuple<Tensor, Tensor, Tensor>;

void check_convolution_silu(const Tensor& x, const Mask& mask, const Tensor& kernel,
                            const Tensor& bias, int64_t future) {
  LRA_CHECK(x.dim() == 3 && kernel.dim() == 2);
  LRA_CHECK_EQ(kernel.size(0), x.size(2));
  LRA_CHECK(bias.sizes() == at::IntArrayRef({x.size(2)}));
  LRA_CHECK(kernel.scalar_type() == wide_type(x) && bias.scalar_type() == wide_type(x));
  LRA_CHECK(0 <= future && future < kernel.size(1));
  check_mask(mask, x.size(0), x.size(1));
}

Tensor argument_of_silu(const Tensor& x, const Mask& mask, const Tensor& kernel, const Tensor& bias,
                        int64_t future) {
  check_convolution_silu(x, mask, kernel, bias, future);
  static const auto op =
      find_op<Tensor(const Tensor&, const Mask&, const Tensor&, int64_t)>("lra::convolution");
  return op.call(x, mask, kernel, future) + beside(bias, x);
}

Tensor composed_convolution_silu(const Tensor& x, const Mask& mask, const Tensor& kernel,
                                 const Tensor& bias, int64_t future) {
  return without_padding(ops::silu(argument_of_silu(x, mask, kernel, bias, future)), mask);
}

ConvolutionSiluGradients composed_convolution_silu_backward(const Tensor& grad, const Tensor& x,
                                                            const Mask& mask, const Tensor& kernel,
                                                            const Tensor& bias, int64_t future) {
  static const auto of_silu =
      find_op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Mask&)>(
          "lra::silu_backward");
  static const auto of_convolution = find_op<std::tuple<Tensor, Tensor>(
      const Tensor&, const Tensor&, const Mask&, const Tensor&, int64_t, std::array<bool, 2>)>(
      "lra::convolution_backward");
  const Tensor local = argument_of_silu(x, mask, kernel, bias, future);
  const Tensor g =
      without_padding(std::get<0>(of_silu.call(grad, local, std::nullopt)), mask).contiguous();
  const auto [of_x, of_kernel] = of_convolution.call(g, x, mask, kernel, future, {true, true});
  return {of_x, of_kernel, sum_of_rows(g.flatten(0, 1))};
}

static_assert(kMostFusedLags <= kernels::kMostShortLags);

bool has_few_lags(const Tensor& kernel) { return kernel.size(1) <= kMostFusedLags; }

// Points into its arguments; `weights` [K, D].
template <typename T>
kernels::ShortConvolution<T> short_problem(const Tensor& x, const Mask& mask, const Tensor& weights,
                                           const Tensor& bias, int64_t future) {
  using W = kernels::Wide<T>;
  return {.batch = x.size(0),
          .length = x.size(1),
          .channels = x.size(2),
          .width = weights.size(0),
          .future = future,
          .row_stride = row_stride(x),
          .x = const_data<T>(x),
          .valid = mask_data(mask),
          .kernel = const_data<W>(weights),
          .bias = const_data<W>(bias)};
}

Tensor convolution_silu_on_cpu(const Tensor& x_in, const Mask& mask, const Tensor& kernel,
                               const Tensor& bias_in, int64_t future) {
  if (!has_few_lags(kernel)) return composed_convolution_silu(x_in, mask, kernel, bias_in, future);
  check_convolution_silu(x_in, mask, kernel, bias_in, future);
  const Tensor x = with_even_rows(x_in), weights = kernel.t().contiguous();
  const Tensor bias = bias_in.contiguous(), y = at::empty(x.sizes(), x.options());
  with_float_type(x, "lra::convolution_silu", [&](auto zero) {
    using T = decltype(zero);
    kernels::short_convolution_forward(short_problem<T>(x, mask, weights, bias, future),
                                       mutable_data<T>(y));
  });
  return y;
}

ConvolutionSiluGradients convolution_silu_backward_on_cpu(const Tensor& grad_in, const Tensor& x_in,
                                                          const Mask& mask, const Tensor& kernel,
                                                          const Tensor& bias_in, int64_t future) {
  if (!has_few_lags(kernel))
    return composed_convolution_silu_backward(grad_in, x_in, mask, kernel, bias_in, future);
  check_convolution_silu(x_in, mask, kernel, bias_in, future);
  LRA_CHECK_EQ(grad_in.sizes(), x_in.sizes());
  const Tensor x = with_even_rows(x_in), grad = grad_in.contiguous(), bias = bias_in.contiguous();
  const Tensor weights = kernel.t().contiguous(), of_x = at::empty(x.sizes(), x.options());
  const int64_t width = kernel.size(1);
  const Tensor of_parameters = at::empty({width + 1, x.size(2)}, kernel.options());
  with_float_type(x, "lra::convolution_silu", [&](auto zero) {
    using T = decltype(zero);
    kernels::short_convolution_backward(short_problem<T>(x, mask, weights, bias, future),
                                        const_data<T>(grad), mutable_data<T>(of_x),
                                        mutable_data<kernels::Wide<T>>(of_parameters));
  });
  return {of_x, of_parameters.narrow(0, 0, width).t().contiguous(), of_parameters[width]};
}

Tensor call_convolution_silu(const Tensor& x, const Mask& mask, const Tensor& kernel,
                             const Tensor& bias, int64_t future) {
  static const auto op = find_op<decltype(convolution_silu_on_cpu)>("lra::convolution_silu");
  return op.call(x, mask, kernel, bias, future);
}

struct ConvolutionSiluFunction : torch::autograd::Function<ConvolutionSiluFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& kernel,
                        const Tensor& bias, const Mask& mask, int64_t future) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x, kernel, bias, tensor_or_empty(mask)});
    ctx->saved_data["future"] = future;
    return call_convolution_silu(x, mask, kernel, bias, future);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Mask mask = optional_tensor(saved[3]);
    const int64_t future = ctx->saved_data["future"].toInt();
    if (at::GradMode::is_enabled()) {
      const auto y = [&](const auto& in) {
        return variable_list{composed_convolution_silu(in[0], mask, in[1], in[2], future)};
      };
      return composed_gradients("lra::convolution_silu", y, {saved[0], saved[1], saved[2]}, grads,
                                5);
    }
    static const auto op =
        find_op<decltype(convolution_silu_backward_on_cpu)>("lra::convolution_silu_backward");
    const auto [of_x, of_kernel, of_bias] =
        op.call(grads[0], saved[0], mask, saved[1], saved[2], future);
    return {of_x, of_kernel, of_bias, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor convolution_silu(const Tensor& x_BLD, const Tensor& mask_BL, const Tensor& kernel_DK,
                        const Tensor& bias_D, int64_t future) {
  return call_convolution_silu(x_BLD, optional_tensor(mask_BL), kernel_DK, bias_D, future);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "convolution_silu(Tensor x, Tensor? mask, Tensor kernel, Tensor bias, int future=0) -> "
      "Tensor",
      composed_convolution_silu);
  m.def(
      "convolution_silu_backward(Tensor grad, Tensor x, Tensor? mask, Tensor kernel, Tensor bias, "
      "int future) -> (Tensor, Tensor, Tensor)",
      composed_convolution_silu_backward);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("convolution_silu", convolution_silu_on_cpu);
  m.impl("convolution_silu_backward", convolution_silu_backward_on_cpu);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("convolution_silu", [](const Tensor& x, const Mask& mask, const Tensor& kernel,
                                const Tensor& bias, int64_t future) {
    return ConvolutionSiluFunction::apply(x, kernel, bias, mask, future);
  });
}

}  // namespace lra::ops
