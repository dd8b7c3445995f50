#include "ops/long_convolution.h"

#include "kernels/convolution/transforms.h"
#include "ops/composed.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Mask = std::optional<Tensor>;

// Lags up to which sums are faster than transforms (docs/numerics.md).
constexpr int64_t kMaxDirectWidth = 384;

template <typename T>
kernels::Convolution<T> convolution_problem(const Tensor& x, const Mask& mask, int64_t width,
                                            int64_t future) {
  return {.batch = x.size(0),
          .length = x.size(1),
          .channels = x.size(2),
          .width = width,
          .future = future,
          .x = const_data<T>(x),
          .valid = mask ? mask->const_data_ptr<uint8_t>() : nullptr};
}

void check_arguments(const Tensor& x, const Mask& mask, int64_t width, int64_t future) {
  LRA_CHECK_EQ(x.dim(), 3);
  LRA_CHECK(0 <= future && future < width);
  check_mask(mask, x.size(0), x.size(1));
}

Tensor convolution_cpu(const Tensor& x_in, const Mask& mask, const Tensor& kernel, int64_t future) {
  check_arguments(x_in, mask, kernel.size(1), future);
  const Tensor x = x_in.contiguous(), weights = kernel.t().contiguous();
  Tensor y = at::empty_like(x);
  with_float_type(x, "lra::convolution", [&](auto zero) {
    using T = decltype(zero);
    auto problem = convolution_problem<T>(x, mask, kernel.size(1), future);
    problem.kernel = const_data<kernels::Wide<T>>(weights);
    problem.y = mutable_data<T>(y);
    kernel.size(1) > kMaxDirectWidth ? kernels::convolve_by_transforms(problem)
                                     : kernels::convolve(problem);
  });
  return y;
}

Tensor kernel_gradient_cpu(const Tensor& grad_in, const Tensor& x_in, const Mask& mask,
                           int64_t width, int64_t future) {
  check_arguments(x_in, mask, width, future);
  const Tensor x = x_in.contiguous(), grad = grad_in.contiguous();
  Tensor weights = at::empty({width, x.size(2)}, x.options().dtype(wide_type(x)));
  with_float_type(x, "lra::convolution_kernel_gradient", [&](auto zero) {
    using T = decltype(zero);
    const auto problem = convolution_problem<T>(x, mask, width, future);
    auto* const to = mutable_data<kernels::Wide<T>>(weights);
    width > kMaxDirectWidth
        ? kernels::kernel_gradient_by_transforms(problem, const_data<T>(grad), to)
        : kernels::convolution_kernel_gradient(problem, const_data<T>(grad), to);
  });
  return weights.t().contiguous();
}

Tensor call_convolution(const Tensor& x, const Mask& mask, const Tensor& kernel, int64_t future) {
  static const auto op = find_op<decltype(convolution_cpu)>("lra::convolution");
  return op.call(x, mask, kernel, future);
}

Tensor call_kernel_gradient(const Tensor& grad, const Tensor& x, const Mask& mask, int64_t width,
                            int64_t future) {
  static const auto op = find_op<decltype(kernel_gradient_cpu)>("lra::convolution_kernel_gradient");
  return op.call(grad, x, mask, width, future);
}

Tensor composed(const Tensor& x, const Mask& mask, const Tensor& kernel, int64_t future) {
  check_arguments(x, mask, kernel.size(1), future);
  const int64_t length = x.size(1), size = kernels::fourier_size(length + kernel.size(1));
  const Tensor spectra = at::fft_rfft(without_padding(x.to(wide_type(x)), mask), size, 1) *
                         at::fft_rfft(kernel, size, 1).t();
  const Tensor y = at::fft_irfft(spectra, size, 1).narrow(1, future, length);
  return without_padding(y, mask).to(x.scalar_type());
}

struct ConvolutionFunction : torch::autograd::Function<ConvolutionFunction> {
  // The mask comes last: needs_input_grad() counts the tensors that exist.
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& kernel,
                        const Mask& mask, int64_t future) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x, kernel, tensor_or_empty(mask)});
    ctx->saved_data["future"] = future;
    return call_convolution(x, mask, kernel, future);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &kernel = saved[1], &grad = grads[0];
    const Mask mask = optional_tensor(saved[2]);
    const int64_t width = kernel.size(1), future = ctx->saved_data["future"].toInt();
    if (at::GradMode::is_enabled()) {
      const auto y = [&](const auto& in) {
        return variable_list{composed(in[0], mask, in[1], future)};
      };
      return composed_gradients("lra::convolution", y, {x, kernel}, grads, 4);
    }
    Tensor of_x, of_kernel;
    if (ctx->needs_input_grad(0)) {
      of_x = call_convolution(grad, mask, kernel.flip(1), width - 1 - future);
    }
    if (ctx->needs_input_grad(1)) of_kernel = call_kernel_gradient(grad, x, mask, width, future);
    return {of_x, of_kernel, Tensor(), Tensor()};
  }
};

}  // namespace

UsedLags used_lags(const Tensor& kernel_DK, int64_t future, int64_t length) {
  const int64_t reach = length - 1, first = std::max<int64_t>(0, future - reach);
  const int64_t end = std::min(kernel_DK.size(1), future + reach + 1);
  return {kernel_DK.narrow(1, first, end - first), future - first};
}

Tensor long_convolution(const Tensor& x_BLD, const Tensor& mask_BL, const Tensor& kernel_DK,
                        int64_t future) {
  const UsedLags used = used_lags(kernel_DK, future, x_BLD.size(1));
  // A copy: what is kept for the backward pass would hold on to the lags that are not used.
  return call_convolution(x_BLD, optional_tensor(mask_BL), used.kernel_DK.contiguous(),
                          used.future);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("convolution(Tensor x, Tensor? mask, Tensor kernel, int future=0) -> Tensor", composed);
  m.def(
      "convolution_kernel_gradient(Tensor grad, Tensor x, Tensor? mask, int width, int future) -> "
      "Tensor");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("convolution", convolution_cpu);
  m.impl("convolution_kernel_gradient", kernel_gradient_cpu);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("convolution",
         [](const Tensor& x, const Mask& mask, const Tensor& kernel, int64_t future) {
           return ConvolutionFunction::apply(x, kernel, mask, future);
         });
}

}  // namespace lra::ops
