#include "ops/convolution_silu.h"

#include "ops/fused_function.h"
#include "ops/pointwise/gate.h"
#include "ops/precision.h"
#include "ops/product.h"
#include "ops/short_convolution_problem.h"

namespace lra::ops {
namespace {

using Mask = MaybeTensor;

Tensor argument_of_silu(const Tensor& x, const Mask& mask, const Tensor& kernel, const Tensor& bias,
                        int64_t future) {
  check_convolution_silu(x, mask, kernel, bias, future);
  static const auto op =
      find_op<Tensor(const Tensor&, const Mask&, const Tensor&, int64_t)>("lra::convolution");
  return op.call(x, mask, kernel, future) + beside(bias, x);
}

}  // namespace

void check_convolution_silu(const Tensor& x, const Mask& mask, const Tensor& kernel,
                            const Tensor& bias, int64_t future) {
  LRA_CHECK(x.dim() == 3 && kernel.dim() == 2);
  LRA_CHECK_EQ(kernel.size(0), x.size(2));
  LRA_CHECK(bias.sizes() == at::IntArrayRef({x.size(2)}));
  LRA_CHECK(kernel.scalar_type() == wide_type(x) && bias.scalar_type() == wide_type(x));
  LRA_CHECK(0 <= future && future < kernel.size(1));
  check_mask(mask, x.size(0), x.size(1));
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

namespace {

static_assert(kMostFusedLags <= kernels::kMostShortLags);

bool has_few_lags(const Tensor& kernel) { return kernel.size(1) <= kMostFusedLags; }

Tensor convolution_silu_on_cpu(const Tensor& x, const Mask& mask, const Tensor& kernel,
                               const Tensor& bias, int64_t future) {
  if (!has_few_lags(kernel)) return composed_convolution_silu(x, mask, kernel, bias, future);
  const ShortConvolutionArguments in(x, mask, kernel, bias, future);
  const Tensor y = at::empty(x.sizes(), x.options());
  with_float_type(x, "lra::convolution_silu", [&]<typename T>(T) {
    kernels::short_convolution_forward(in.problem<T>(), mutable_data<T>(y));
  });
  return y;
}

ConvolutionSiluGradients convolution_silu_backward_on_cpu(const Tensor& grad, const Tensor& x,
                                                          const Mask& mask, const Tensor& kernel,
                                                          const Tensor& bias, int64_t future) {
  if (!has_few_lags(kernel))
    return composed_convolution_silu_backward(grad, x, mask, kernel, bias, future);
  const ShortConvolutionArguments in(x, mask, kernel, bias, future);
  const ShortConvolutionResults to(in, grad);
  with_float_type(x, "lra::convolution_silu", [&]<typename T>(T) {
    kernels::short_convolution_backward(in.problem<T>(), const_data<T>(to.grad),
                                        mutable_data<T>(to.of_x),
                                        mutable_data<kernels::Wide<T>>(to.of_parameters));
  });
  return to.gradients();
}

struct ConvolutionSiluFunction
    : FusedOperator<ConvolutionSiluFunction, "lra::convolution_silu", composed_convolution_silu,
                    "lra::convolution_silu_backward", composed_convolution_silu_backward,
                    /*kMaskPlace=*/1> {};

}  // namespace

Tensor convolution_silu(const Tensor& x_BLD, const Tensor& mask_BL, const Tensor& kernel_DK,
                        const Tensor& bias_D, int64_t future) {
  return dispatch<"lra::convolution_silu", convolution_silu_on_cpu>(x_BLD, optional_tensor(mask_BL),
                                                                    kernel_DK, bias_D, future);
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
  m.impl("convolution_silu", applies<ConvolutionSiluFunction>(composed_convolution_silu));
}

}  // namespace lra::ops
